"""One proxied connection without a socket: bytes in, effects out.

Pure: no asyncio, sockets, TLS, clock, randomness or logging; may import decoders, rules and settings only.
"""
