"""Captured traffic: its format, writing and reading it, importing and exporting it."""
