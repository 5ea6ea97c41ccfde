"""The edge: listeners, sessions, address rewriting, metrics and the admin API."""
