"""Exchanges as traces of OpenTelemetry: a sample of them, made into spans and sent by a thread."""
