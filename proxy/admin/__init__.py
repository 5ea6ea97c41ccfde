"""The HTTP servers: the admin API, metrics and health."""
