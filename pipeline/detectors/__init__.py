"""Finds mistakes of clients and brokers: each detector reads tables and gives findings."""
