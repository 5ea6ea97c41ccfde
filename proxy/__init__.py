"""The proxy: sessions, sockets, clusters, rules, log, metrics and the admin API."""
