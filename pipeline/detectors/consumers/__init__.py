"""Detectors of consumers: polling, fetching, offsets."""
