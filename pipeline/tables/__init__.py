"""The tables of a capture (schemas.py), each made when it is first asked for."""

from klamm.pipeline.tables.tables import Tables

__all__ = ["Tables"]
