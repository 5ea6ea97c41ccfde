"""What goes wrong between clients and brokers, one file each: tables in, findings out."""
