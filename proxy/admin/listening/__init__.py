"""HTTP listeners of klamm's own: their connections, TLS, JSON and problems."""
