"""klamm's own credentials for the brokers, and how it authenticates with them."""
