"""The ports for the clients of a cluster: the node that each leads to, and what clusters share."""
