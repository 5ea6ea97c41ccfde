"""Rows on disk: segments in Arrow's format, written as they grow, and read."""
