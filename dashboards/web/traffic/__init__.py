"""The view `traffic`: clients, brokers and topics, and who talks to whom, of counters and captures alike."""
