"""Scenarios: named phases over time, made of rules, with what is expected of clients in each."""
