"""Counters, summaries of requests and responses, and the listeners of exchanges."""
