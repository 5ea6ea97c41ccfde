"""Responses of brokers, changed so that clients stay with klamm: addresses, and the versions on offer."""
