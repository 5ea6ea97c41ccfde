"""The way in of connections: listeners, headers of load balancers, TLS and SASL."""
