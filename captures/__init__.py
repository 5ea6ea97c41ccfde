"""Traffic that was kept: its format, written and read, taken from elsewhere and given on."""
