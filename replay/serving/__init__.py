"""A capture plays the broker, on a port for each node that it names."""
