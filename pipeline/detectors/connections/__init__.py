"""Detectors of connections, metadata requests and errors of clients."""
