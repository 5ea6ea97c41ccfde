"""SASL of the clients, where klamm authenticates them: messages in, verdicts out. No sockets and no loop."""
