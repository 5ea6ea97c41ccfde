"""What to do with a frame: pure decisions from (frame, exchange, now, random)."""
