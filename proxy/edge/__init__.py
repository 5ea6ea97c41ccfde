"""Sockets: a client, its broker and the session between them. Carries out the effects of sessions."""
