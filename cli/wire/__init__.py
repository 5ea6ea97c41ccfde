"""`klamm wire` and `klamm errors`: what the protocol's tables say."""
