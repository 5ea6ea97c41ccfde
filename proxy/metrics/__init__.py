"""Counters of the sessions, copied at one moment and written for Prometheus or as JSON."""
