"""One cluster: its listening ports, connections to its brokers, and klamm's own requests to it."""
