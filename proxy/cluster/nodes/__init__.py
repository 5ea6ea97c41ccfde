"""The nodes of a cluster: kept over a restart, logged as they change, told to others."""
