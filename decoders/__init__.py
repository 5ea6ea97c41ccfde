"""Bytes <-> values: the wire protocol of Apache Kafka, 0.8 to 4.4, declared once. Pure: no input or output
here.
"""

from klamm.decoders.apis import API
from klamm.decoders.body import decode, encode, layout
from klamm.decoders.error_codes import ERRORS
from klamm.decoders.failures import DecodeError, EncodeError, UnknownApi

__all__ = ["API", "ERRORS", "DecodeError", "EncodeError", "UnknownApi", "decode", "encode", "layout"]
