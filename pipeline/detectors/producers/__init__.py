"""Detectors of producers: batches, partitions, transactions, acknowledgements."""
