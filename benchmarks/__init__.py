"""Benchmarks, run from the tree by `python -m benchmarks`.

Of klamm they use the command only; `decode` uses the decoders.
"""
