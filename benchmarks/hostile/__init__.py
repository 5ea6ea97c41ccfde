"""One client attacks klamm while another works: the other's latency, and klamm's memory."""
