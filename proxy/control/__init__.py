"""Things that people change while klamm runs: rules, listeners of exchanges, paused frames, captures."""
