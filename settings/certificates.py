"""Fields of X.509 certificates (RFC 5280), and the time in which one is valid."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from klamm.settings.der import SEQUENCE, content_of, values_in

SOON: Final = timedelta(days=14)
BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
VERSION = 0xA0  # the tag of a field that may be missing
VALIDITY, SUBJECT = 3, 4  # fields before it: serial number, algorithm, issuer, and validity
FORMATS = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}  # UTCTime, GeneralizedTime


def field_of(certificate: bytes, number: int) -> bytes:
    """A field of a certificate in DER, with its tag. Raises ValueError for other bytes."""
    signed = next(values_in(certificate, SEQUENCE), b"")
    fields = [each for each in values_in(signed, SEQUENCE) if each[0] != VERSION]
    if len(fields) <= SUBJECT:
        raise ValueError("a certificate without a subject")
    return fields[number]


class Validity(NamedTuple):
    """The time in which the certificate of a file is valid, from its first to its last second."""

    file: str
    first: datetime
    last: datetime

    def doubt(self, now: datetime) -> str | None:
        """Why the certificate cannot be used now, or soon."""
        if now < self.first:
            return f"the certificate in {self.file} is valid from {_told(self.first)} on, which is not yet"
        if now > self.last:
            return f"the certificate in {self.file} has expired at {_told(self.last)}: put a new one there"
        if self.last - now < SOON:
            return f"the certificate in {self.file} expires at {_told(self.last)}"
        return None


def validity_of(file: str) -> Validity | None:
    """Of the first certificate in a PEM file, which is that of its owner; None: it has none that can be read.
    Raises OSError.
    """
    text = Path(file).read_text("ascii", "replace")
    _, begin, rest = text.partition(BEGIN)
    try:
        certificate = ssl.PEM_cert_to_DER_cert(begin + rest.partition(END)[0] + END)
        first, last = map(_time, values_in(field_of(certificate, VALIDITY), SEQUENCE))
    except (ValueError, KeyError):
        return None
    return Validity(file, first, last)


def _time(value: bytes) -> datetime:
    text = content_of(value, value[0]).decode("ascii")
    return datetime.strptime(text, FORMATS[value[0]]).replace(tzinfo=UTC)


def _told(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
