"""Captures on Spark: tables of what clients and brokers said, findings in them, and a report."""
