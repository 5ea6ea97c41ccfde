"""The server name in a ClientHello, as OpenSSL and others write it, in any pieces, and in hostile bytes."""

from __future__ import annotations

import contextlib
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy.edge.accepting.client_hello import LARGEST_HELLO, BadHello, HelloReader

NAMES = st.from_regex(r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?(\.[a-z]{2,10}){1,4}", fullmatch=True)


def hello_of_openssl(name: str | None, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """The first bytes of a client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = name is not None
    context.maximum_version = most
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def vector(size: int, content: bytes) -> bytes:
    return len(content).to_bytes(size) + content


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2) + vector(2, content)


def message(extensions: bytes | None) -> bytes:
    """A ClientHello with these extensions; None: without the field."""
    body = b"\3\3" + bytes(32) + vector(1, b"") + vector(2, b"\x13\1") + vector(1, b"\0")
    return b"\1" + vector(3, body + (b"" if extensions is None else vector(2, extensions)))


def records(data: bytes, size: int = 1 << 14) -> bytes:
    """In records of at most so many bytes."""
    parts = (data[at : at + size] for at in range(0, len(data), size))
    return b"".join(b"\x16\3\1" + vector(2, part) for part in parts)


def named(name: bytes, kind: int = 0) -> bytes:
    return extension(0, vector(2, bytes([kind]) + vector(2, name)))


def read(data: bytes) -> HelloReader:
    reader = HelloReader()
    reader.feed(data)
    return reader


def name_in(data: bytes) -> str | None:
    hello = read(data).hello
    assert hello is not None
    return hello.server_name


@given(NAMES, st.sampled_from([ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]))
def test_the_name_that_openssl_writes_is_read(name: str, most: ssl.TLSVersion) -> None:
    assert name_in(hello_of_openssl(name, most)) == name.lower()


def test_a_client_may_send_no_name() -> None:
    assert name_in(hello_of_openssl(None)) is None
    assert name_in(records(message(None))) is None
    assert name_in(records(message(b""))) is None
    assert name_in(records(message(named(b"other", kind=7)))) is None


@given(NAMES, st.integers(1, 300), st.lists(st.integers(1, 50), max_size=50))
def test_records_and_reads_may_cut_it_anywhere(name: str, record: int, cuts: list[int]) -> None:
    data = records(
        message(extension(43, b"\2\3\4") + named(name.encode()) + extension(51, bytes(99))), record
    )
    reader, at = HelloReader(), 0
    for size in cuts:
        reader.feed(data[at : at + size])
        at += size
    assert reader.hello is None or at >= len(data)
    reader.feed(data[at:])
    assert reader.hello is not None
    assert reader.hello.server_name == name.lower()


@given(NAMES, st.data())
def test_a_part_of_it_is_not_enough(name: str, draw: st.DataObject) -> None:
    data = hello_of_openssl(name)
    assert read(data[: draw.draw(st.integers(0, len(data) - 1))]).hello is None


def test_bytes_behind_it_are_left_alone() -> None:
    assert name_in(hello_of_openssl("a.example") + b"\x17\3\3\0\0 and more") == "a.example"


def test_a_name_is_in_lower_case_without_its_last_dot_and_other_bytes_are_escaped() -> None:
    assert name_in(records(message(named(b"Broker-1.Example.")))) == "broker-1.example"
    assert name_in(records(message(named(b"\xc3\xa4.example")))) == r"\xc3\xa4.example"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x80\x2e\1\3\1", "no handshake of TLS"),
        (b"\x16\2\0\0\5", "no handshake of TLS"),
        (b"\x16\3\1\0\0", "has 0 bytes"),
        (b"\x16\3\1\x40\1", "has 16385 bytes"),
        (records(b"\2\0\0\0"), "of type 2"),
        (records(b"\1" + (LARGEST_HELLO + 1).to_bytes(3)), "more than 16384"),
        (records(message(named(b""))), "0 bytes"),
        (records(message(named(bytes(256)))), "256 bytes"),
        (records(b"\1" + vector(3, bytes(33))), "ends too early"),
        (records(message(b"\0\0\0")), "ends too early"),
        (records(message(extension(0, b"\0\x09\0\0\1a"))), "ends too early"),
    ],
)
def test_bytes_that_are_no_hello_say_why(data: bytes, says: str) -> None:
    with pytest.raises(BadHello, match=says):
        read(data)


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for sent in (data, b"\x16\3\1" + data, records(b"\1" + vector(3, data)), records(message(data))):
        reader = HelloReader()
        with contextlib.suppress(BadHello):
            reader.feed(sent)
            assert len(reader.rest) + len(reader.message) <= len(sent)


def test_the_work_for_a_byte_does_not_grow_with_those_before() -> None:
    """Records of one byte each, one by one: the message is looked at whole only once."""
    data = records(b"\1" + LARGEST_HELLO.to_bytes(3) + bytes(LARGEST_HELLO - 1), 1)
    reader = HelloReader()
    for at in range(0, len(data), 6):
        reader.feed(data[at : at + 6])
        assert not reader.rest
    assert reader.hello is None
    assert len(reader.message) == LARGEST_HELLO + 3
