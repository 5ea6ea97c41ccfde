"""Settings as people write them: typed YAML, amounts with units, the nearest valid word."""
