"""The structured log: lines about events and exchanges, written in a thread of its own."""
