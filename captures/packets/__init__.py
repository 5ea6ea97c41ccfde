"""Packets recorded by other tools, as rows; and rows as packets."""
