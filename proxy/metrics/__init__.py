"""Copies the counters of the sessions, and writes them for Prometheus or as JSON."""
