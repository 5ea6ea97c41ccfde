"""`klamm run`: its options and klamm.yaml become one configuration."""
