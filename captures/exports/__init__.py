"""Exchanges for other tools."""
