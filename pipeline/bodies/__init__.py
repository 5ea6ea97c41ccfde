"""Bodies of frames as columns: names, JSON and VARIANT; many of one layout at once, or one by one."""
