"""`klamm demo`: a cluster, klamm in front of it, clients, and the live view."""
