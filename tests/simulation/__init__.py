"""Connections through klamm's pure session, driven by one seed, and judged by code that is not klamm's."""
