"""Segments are Arrow IPC files: their messages, and rows as columns."""
