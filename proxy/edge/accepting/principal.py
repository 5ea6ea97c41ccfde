"""The principal of a client with a certificate, as Kafka's DefaultKafkaPrincipalBuilder makes it: `User:` and
the subject as Java's X500Principal.getName() writes it (RFC 2253).
"""

from __future__ import annotations

import re
import ssl

from klamm.settings.certificates import SUBJECT, field_of
from klamm.settings.der import OBJECT_IDENTIFIER, SEQUENCE, SET, content_of, values_in

NAMES = {  # object identifier -> its name in RFC 2253; others stand as numbers
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
UTF8, PRINTABLE, T61, IA5, GENERAL, BMP = 12, 19, 20, 22, 27, 30
TEXTS = frozenset({UTF8, PRINTABLE, T61, IA5, GENERAL, BMP})  # Java reads all of them as UTF-8
ESCAPED = str.maketrans({**{each: f"\\{each}" for each in ',=+<>#;"\\'}, "\0": "\\00"})
SPACES = " \r"
SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")  # no UTF-8: one character to Java


def client_principal(tls: ssl.SSLObject | None) -> str | None:
    """None for a client without TLS or without a certificate. Raises ValueError."""
    certificate = None if tls is None else tls.getpeercert(binary_form=True)
    return None if certificate is None else principal_of(certificate)


def principal_of(certificate: bytes) -> str:
    """Raises ValueError for bytes that are no X.509 certificate in DER."""
    return f"User:{distinguished_name(field_of(certificate, SUBJECT))}"


def distinguished_name(name: bytes) -> str:
    """A Name in DER as text: the last part first. Raises ValueError."""
    parts = [values_in(part, SET) for part in values_in(name, SEQUENCE)]
    return ",".join("+".join(map(_attribute, part)) for part in reversed(parts))


def _attribute(attribute: bytes) -> str:
    """CN=text, or a number and the value's bytes where the name or the text is unknown to RFC 2253."""
    kind, value = values_in(attribute, SEQUENCE)
    number = _number(content_of(kind, OBJECT_IDENTIFIER))
    name = NAMES.get(number, number)
    if name == number or value[0] not in TEXTS:
        return f"{name}=#{value.hex()}"
    text = SURROGATE.sub("\ufffd".encode(), content_of(value, value[0]))
    return f"{name}={_text(text.decode('utf-8', 'replace'))}"


def _text(value: str) -> str:
    """Escaped: separators, and spaces at both ends."""
    inner = value.translate(ESCAPED).strip(SPACES)
    before = len(value) - len(value.lstrip(SPACES))
    after = len(value) - before - len(value.strip(SPACES))
    first, last = value[:before], value[len(value) - after :]
    return f"{_each_escaped(first)}{inner}{_each_escaped(last)}"


def _each_escaped(spaces: str) -> str:
    return "".join(f"\\{each}" for each in spaces)


def _number(content: bytes) -> str:
    """An object identifier with dots. Raises ValueError."""
    if not content or content[-1] & 0x80:
        raise ValueError("an object identifier that is cut short")
    arcs, arc = [], 0
    for byte in content:
        arc = arc << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(arc)
            arc = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))
