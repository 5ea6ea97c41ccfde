"""Detectors of consumer groups: members, generations, assignments."""
