"""The audit log's view of clients: who they are, and what they ask for."""
