"""Sums over captures, their differences, and trials of rules."""
