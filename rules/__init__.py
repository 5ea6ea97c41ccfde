"""Decisions of rules about frames: pure functions of (frame, exchange, now, random)."""
