"""The principal of a client's certificate, judged by Kafka's own classes."""

from __future__ import annotations

import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from klamm.proxy.edge.accepting.principal import NAMES, distinguished_name, principal_of
from tests.oracle.principals import principals

CN, OU, O_, EMAIL = "2.5.4.3", "2.5.4.11", "2.5.4.10", "1.2.840.113549.1.9.1"
UTF8, IA5, BIT_STRING, UNIVERSAL = 12, 22, 3, 28
Part = list[tuple[str, bytes, int]]  # object identifier, content, tag


def value(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + length + content


def number(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    content = b""
    for arc in (40 * first + second, *rest):
        groups = [arc & 0x7F]
        while arc := arc >> 7:
            groups.append(arc & 0x7F | 0x80)
        content += bytes(reversed(groups))
    return value(6, content)


def name(*parts: Part) -> bytes:
    """A Name in DER; each part may have several values."""
    made = (b"".join(value(48, number(of) + value(tag, text)) for of, text, tag in part) for part in parts)
    return value(48, b"".join(value(49, part) for part in made))


def one(of: str, text: str | bytes, tag: int = UTF8) -> Part:
    return [(of, text if isinstance(text, bytes) else text.encode(), tag)]


SUBJECTS = {
    "User:": name(),
    "User:CN=orders": name(one(CN, "orders")),
    "User:CN=orders,OU=a,OU=b,O=Example": name(
        one(O_, "Example"), one(OU, "b"), one(OU, "a"), one(CN, "orders")
    ),
    r"User:CN=Doe\, John \"J\" \+1 \<a\=b\>\; \#\\": name(one(CN, 'Doe, John "J" +1 <a=b>; #\\')),
    r"User:CN=\ \ a b\ ": name(one(CN, "  a b ")),
    r"User:CN=\ \ ": name(one(CN, "  ")),
    "User:CN=": name(one(CN, "")),
    "User:CN=Zoë 東京 𝄞": name(one(CN, "Zoë 東京 𝄞")),
    "User:CN=orders+UID=7": name([*one(CN, "orders"), *one("0.9.2342.19200300.100.1.1", "7")]),
    f"User:1.2.840.113549.1.9.1=#1605{b'a@b.c'.hex()},CN=a": name(one(CN, "a"), one(EMAIL, "a@b.c", IA5)),
    r"User:CN=a\00b": name(one(CN, "a\0b")),
    "User:CN=#0302000f": name(one(CN, b"\x00\x0f", BIT_STRING)),
}


@pytest.mark.parametrize("wanted", SUBJECTS)
def test_a_subject_is_written_as_rfc_2253_says(wanted: str) -> None:
    assert f"User:{distinguished_name(SUBJECTS[wanted])}" == wanted


def test_kafka_makes_the_same_principals() -> None:
    draw = Random(19)
    kinds = [*NAMES, EMAIL, "2.5.4.5", "2.5.4.12", "2.999.5", "1.3.6.1.4.1.311.60.2.1.3"]
    letters = 'ab Z9,=+<>#;"\\\r\n\t\0\x7f@*_&éß東𝄞'
    tags = [12, 12, 12, 19, 20, 22, 27, 30, UNIVERSAL, BIT_STRING]

    def part() -> Part:
        tag = draw.choice(tags)
        raw = "".join(draw.choices(letters, k=draw.randrange(12))).encode()
        content = {BIT_STRING: b"\0" + raw, 30: raw.decode().encode("utf-16-be", "surrogatepass")}.get(
            tag, raw
        )
        return [(draw.choice(kinds), content, tag)]

    made = [*SUBJECTS.values()]
    made += [
        name(
            *(
                [each for _ in range(draw.choice([1, 1, 1, 2, 3])) for each in part()]
                for _ in range(draw.randrange(6))
            )
        )
        for _ in range(3000)
    ]
    rough = bytes(
        [0x20, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC3, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5]
    )
    made += [name(one(CN, bytes(draw.choices(rough, k=9)), draw.choice([12, 20, 30]))) for _ in range(3000)]
    made += [name(one(CN, "long" * 200))]
    assert [f"User:{distinguished_name(each)}" for each in made] == principals(made)


def test_the_subject_of_a_certificate_is_read(tmp_path: Path) -> None:
    request = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -utf8 -multivalue-rdn -subj"
    )
    subject = "/C=DE/O=Example, Inc./OU=a/OU=b/CN=Zoë+UID=7/emailAddress=a@b.c"
    subprocess.run(
        ["openssl", *request.split(), subject], cwd=tmp_path, check=True, capture_output=True, timeout=30
    )
    certificate = ssl.PEM_cert_to_DER_cert((tmp_path / "cert.pem").read_text())
    email = f"1.2.840.113549.1.9.1=#1605{b'a@b.c'.hex()}"
    both = "UID=7+CN=Zoë", "CN=Zoë+UID=7"  # openssl sorts the values of one part by their bytes
    assert principal_of(certificate) in [
        f"User:{email},{one},OU=b,OU=a,O=Example\\, Inc.,C=DE" for one in both
    ]


def test_damaged_certificates_are_refused(context: ssl.SSLContext, certificates: Path) -> None:
    text = (certificates / "broker.crt").read_text()
    whole = ssl.PEM_cert_to_DER_cert(text)
    assert principal_of(whole) == "User:CN=broker"
    draw = Random(7)
    for _ in range(3000):
        damaged = bytearray(whole[: draw.randrange(len(whole) + 1)])
        for _ in range(draw.randrange(4) if damaged else 0):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        with suppress(ValueError):
            assert principal_of(bytes(damaged)).startswith("User:")
