"""Packets that others recorded, as rows; and rows as packets."""
