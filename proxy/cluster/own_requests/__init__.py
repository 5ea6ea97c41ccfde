"""klamm's own requests to the brokers of a cluster: which nodes there are, and whether they answer."""
