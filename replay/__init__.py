"""A capture played again: as the clients, or as the broker."""
