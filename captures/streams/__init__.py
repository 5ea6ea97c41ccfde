"""The bytes of a connection, both ways, as rows; what is secret, and what records hold, is left out."""
