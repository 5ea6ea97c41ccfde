"""Secrets and record content in frames that are malformed, or that no table names: nowhere to be read."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.captured import Captured
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.cutting import cut, filled
from klamm.captures.streams.record_content import blanked, hashed
from klamm.decoders import API, encode
from klamm.decoders.headers import (
    read_request_header,
    read_response_header,
    request_frame,
    response_frame,
)
from klamm.decoders.records import SIZE_AT, Batch, Record, write
from klamm.proxy.control.exchange import body
from klamm.proxy.session.effects import Send
from klamm.proxy.session.observing.counters import UNNAMED
from klamm.proxy.session.session import Session
from klamm.rules.frame import Frame, Peer
from tests.captures.made_traffic import Step, batch, contents, exchange_steps, play
from tests.proxy.traffic import ADVERTISE, exchange, ground

HEADERS = (18, 26, 61)  # bytes before the content of a batch, by magic
PEER = Peer("", "1", "a:1", "")
BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
PRIVATE = b"card 4111-1111-1111-1111 of J. Doe; "


def kept_of(data: bytes, how: str = "blank") -> bytes:
    """The bytes of a records field that stay as they came."""
    edits = blanked(data, 0, len(data)) if how == "blank" else hashed(data, 0, len(data), b"key")
    return cut(data, tuple((start, stop - start) for start, stop, _ in edits))


def like_a_header(magic: int) -> bytes:
    """Private text with a size and a magic where the header of a batch has them; it is cut short."""
    text = bytearray(PRIVATE * 4)
    text[SIZE_AT : SIZE_AT + 4] = pack(">i", 1 << 20)
    text[16] = magic
    return bytes(text)


@pytest.mark.parametrize("how", ["blank", "hash"])
@pytest.mark.parametrize("inner", [0, 1, 2])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_nothing_is_kept_behind_a_batch_whose_length_is_too_small(magic: int, inner: int, how: str) -> None:
    made = bytearray(write(Batch(magic=magic), [Record(value=b"x" * 40 + like_a_header(inner))]))
    at = made.index(PRIVATE[:8])
    made[SIZE_AT : SIZE_AT + 4] = pack(">i", at - SIZE_AT - 4)
    kept = kept_of(bytes(made), how)
    assert len(kept) <= HEADERS[magic]
    assert not any(word in kept for word in PRIVATE.split())


@given(st.integers(0, 2), st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 2), st.booleans())
def test_whatever_length_a_batch_announces_no_content_is_kept(
    magic: int, size: int, inner: int, second: bool
) -> None:
    content = like_a_header(inner)
    made = bytearray(write(Batch(magic=magic), [Record(value=content)]))
    made[SIZE_AT : SIZE_AT + 4] = pack(">i", size % (len(made) * 2) if second else size)
    data = bytes(made) + (batch(magic=magic, content=b"z" * 40) if second else b"")
    kept = kept_of(data)
    assert not any(word in kept for word in PRIVATE.split())


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_headers_of_whole_batches_stay_and_that_of_one_that_the_broker_cut(codec: str) -> None:
    one = batch(codec)
    data = one * 3 + one[:70]
    assert len(kept_of(data)) == 4 * HEADERS[2]


PASSWORD = "quiz-yak-zoo-vex-4711-jumbled"


def plain(user: str, password: str, authzid: str = "") -> bytes:
    """A token of SASL PLAIN as SaslHandshake v0 wants it: a size, no header."""
    token = f"{authzid}\0{user}\0{password}".encode()
    return pack(">i", len(token)) + token


def with_client_id(key: int, version: int, client_id: bytes, body: bytes = b"") -> bytes:
    """A frame with these bytes where the client id is due."""
    rest = pack(">hhih", key, version, 7, len(client_id)) + client_id + body
    return pack(">i", len(rest)) + rest


def captured(*frames: bytes) -> list[Captured]:
    return play([Step("request", data) for data in frames])


def client_ids(*frames: bytes) -> list[str | None]:
    """As klamm tells them: in rows of a capture, and in its counters, which must agree."""
    told = [row.client_id for row in captured(*frames) if row.kind == "frame"]
    session = Session(ground(), "1", ADVERTISE, "1.2.3.4:5")
    for data in frames:
        session.from_client(data, 0)
    counted = {counters.client_id for counters in session.connection.context.stats.requests.values()}
    assert counted == {one or UNNAMED for one in told}
    return told


def nowhere(secret: str, *frames: bytes) -> None:
    """No four characters of a secret in a row of a capture, in a counter or in what a session says."""
    session = Session(ground(), "1", ADVERTISE, "1.2.3.4:5")
    told = [repr([row._replace(connection=None) for row in captured(*frames)])]
    for data in frames:
        effects = session.from_client(data, 0)
        if not isinstance(effects, bytes):
            told += [repr(one) for one in effects if not isinstance(one, Send)]
    stats = session.connection.context.stats
    told += [repr((one.client_id, one.api, one.version)) for one in stats.requests.values()]
    for at in range(len(secret) - 3):
        assert not any(secret[at : at + 4] in one for one in told), secret[at : at + 4]


@pytest.mark.parametrize("authzid", ["", "alice"])
@pytest.mark.parametrize("password", [PASSWORD, PASSWORD * 4, PASSWORD * 9])
@pytest.mark.parametrize("user", range(1, 40))
def test_a_password_that_comes_without_a_handshake_is_nowhere(user: int, password: str, authzid: str) -> None:
    nowhere(password, plain("alice-of-wonderland-and-back-again-she-goes"[:user], password, authzid))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=20),
       st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=12, max_size=400))  # fmt: skip
def test_no_token_of_plain_is_taken_for_a_request(user: str, password: str) -> None:
    row = captured(plain(user, password))[0]
    assert (row.api_key, row.correlation_id, row.client_id) == (-1, -1, None)


@pytest.mark.parametrize("key", [95, 150, 999, 10_003, 32767])
@pytest.mark.parametrize("version", [0, 2, 9])
def test_a_password_under_a_key_that_nobody_knows_is_nowhere(key: int, version: int) -> None:
    for there in (plain("u", PASSWORD)[4:], PASSWORD.encode()):
        nowhere(PASSWORD, with_client_id(key, version, there))
        assert client_ids(with_client_id(key, version, there)) == [f"<{len(there)} bytes>"]


@pytest.mark.parametrize("spare", [1, 4, 5, 200])
def test_a_password_behind_a_handshake_with_spare_bytes_is_nowhere(spare: int) -> None:
    body = encode({"mechanism": "PLAIN"}, "SaslHandshake", 0, "request") + bytes(spare)
    handshake = request_frame(API["SaslHandshake"], 0, 1, "app", body)
    for user in ("u", "alice", "alice-01"):
        nowhere(PASSWORD * 4, handshake, plain(user, PASSWORD * 4))
        told = captured(handshake, plain(user, PASSWORD * 4))
        assert [row.kind for row in told] == ["frame", "token", "closed"]


@pytest.mark.parametrize("key", [0, 3, 18, 36])
def test_content_where_the_client_id_is_due_is_told_by_its_size(key: int) -> None:
    for content in (batch(), b"\0\0\0\x10" + PRIVATE, PRIVATE * 8, b"\xff\xfe\xfd", b"a\nb", b"\x1b[2J"):
        assert client_ids(with_client_id(key, 1, content)) == [f"<{len(content)} bytes>"]


def test_text_where_the_client_id_is_due_is_told_by_its_size_where_the_body_is_none() -> None:
    broken = with_client_id(12, 3, PRIVATE, b"\xff\xff\xff")
    assert [row.client_id for row in captured(broken) if row.kind == "frame"] == [f"<{len(PRIVATE)} bytes>"]


ODD = ("", "app", "ä", "Zähler 7", "日本", "a/b:c@d e", "consumer-group-1-0-ffff", "x" * 249, "é" * 124,
       "\"quoted\"", "<12 bytes>")  # fmt: skip


@pytest.mark.parametrize("client_id", ODD)
def test_client_ids_that_clients_really_have_are_told_as_they_are(client_id: str) -> None:
    known = request_frame(API["Heartbeat"], 0, 1, client_id, encode(BEAT, "Heartbeat", 0, "request"))
    newer = request_frame(API["ApiVersions"], 9, 1, client_id, b"\5app\0211\0")
    unknown = with_client_id(999, 3, client_id.encode(), b"something")
    assert client_ids(known, unknown, known) == [client_id] * 3
    assert client_ids(newer) == [client_id]


HUSH = "hush-hush-value-4711"
REPEATING = (
    ("CreateTopics", "topics", "error_message"),
    ("AlterConfigs", "responses", "error_message"),
    ("IncrementalAlterConfigs", "responses", "error_message"),
    ("StreamsGroupHeartbeat", "status", "status_detail"),
)


@pytest.mark.parametrize(("name", "rows", "text"), REPEATING)
def test_messages_that_repeat_configured_values_are_told_by_their_size(
    name: str, rows: str, text: str
) -> None:
    said = f"Invalid value {HUSH} for configuration sasl.jaas.config: not valid"
    for version in range(API[name].versions.first + (name == "CreateTopics"), API[name].versions.last + 1):
        one = exchange(name, version, {}, {rows: [{text: said}]})
        for keeping in (Keeping("blank"), Keeping("keep"), Keeping("hash", b"key")):
            kept = contents(play(exchange_steps(one), keeping=keeping))
            assert HUSH.encode() not in kept
        body_of_it = encode({rows: [{text: said}]}, name, version, "response")
        of = Frame(API[name], version, "response", body_of_it, "app", PEER, 0)
        told = body(of, False)
        assert told.values is not None
        assert told.values[rows][0][text] == {"bytes": len(said)}
        assert body(of, True).raw is None


@pytest.mark.parametrize(("records", "there"), [("blank", False), ("hash", False), ("keep", True)])
def test_metrics_that_clients_push_are_content_as_records_are(records: Any, there: bool) -> None:
    one = [exchange("PushTelemetry", 0, {"metrics": HUSH.encode()}, {}, number) for number in range(12)]
    rows = play(exchange_steps(*one), keeping=Keeping(records, b"key"))
    assert [HUSH.encode() in (row.frame or b"") for row in rows if row.side == "request"] == [there] * 12
    of = API["PushTelemetry"]
    made = Frame(of, 0, "request", encode({"metrics": HUSH.encode()}, 72, 0, "request"), "app", PEER, 0)
    assert body(made, False).values == {
        "client_instance_id": "A" * 22, "subscription_id": 0, "terminating": False, "compression_type": 0,
        "metrics": {"bytes": len(HUSH)},
    }  # fmt: skip


@pytest.mark.parametrize("records", ["blank", "keep", "hash"])
@pytest.mark.parametrize(
    "tags", [[(0, b"x" * 16), (7, HUSH.encode())], [(200, b""), (300, HUSH.encode() * 9)]]
)
def test_tags_of_headers_that_nobody_knows_are_blank(records: Any, tags: list[tuple[int, bytes]]) -> None:
    api, steps = API["Heartbeat"], []
    for number in range(12):
        asked = request_frame(api, 4, number, "app", encode(BEAT, 12, 4, "request"), tags)
        steps += [
            Step("request", asked),
            Step("response", response_frame(api, 4, number, encode({}, 12, 4, "response"), tags)),
        ]
    rows = [row for row in play(steps, keeping=Keeping(records, b"key")) if row.kind == "frame"]
    assert len(rows) == 24
    for row, step in zip(rows, steps, strict=True):
        assert row.frame is not None
        assert b"hush" not in row.frame
        whole = filled(row.frame, row.blanks)
        assert len(whole) == len(step.data) - 4
        read = read_request_header(whole, 2) if row.side == "request" else read_response_header(whole, 1)
        assert [(tag, len(data)) for tag, data in read.tags] == [(tag, len(data)) for tag, data in tags]
        assert whole[read.size :] == step.data[4 + read.size :]
