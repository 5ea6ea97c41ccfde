"""Timelines: marks on lanes, made of exchanges. Pure; what is remembered is bounded."""
