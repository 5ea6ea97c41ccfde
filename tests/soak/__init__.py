"""Real brokers, real clients and a real klamm under faults, for as long as one likes; nothing may be lost."""
