"""The live view in a terminal: `watch` asks for /v1/counters, `frame` draws what happened between two."""
