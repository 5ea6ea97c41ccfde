"""One cluster: its ports, the way to its brokers, and the questions that klamm itself asks it."""
