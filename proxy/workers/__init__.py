"""Processes beside the lead, which serve connections: the lead listens, and hands accepted sockets over."""
