"""Whatever a server answers, its client reads through klamm what it would directly, but for addresses."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.decoders import DecodeError, decode, encode
from klamm.decoders.headers import read_response_header, request_frame, response_header_version
from tests.e2e.klamm_process import Klamm, klamm_in_front_of
from tests.strangers.answers import BLANKED, NAMES, PORTS, Answer, any_answer
from tests.strangers.parts import Address
from tests.strangers.scripted import Batch, Scripts, scripted

PATIENCE_S = 30
FORESEEN = {"undecodable", "undecodable_header", "unrewritable"}
client_ids = count()

# Answers to requests that come at once, and their pieces.
Conversation = list[tuple[list[Answer], list[bytes]]]


class Ground(NamedTuple):
    klamm: Klamm
    scripts: Scripts

    @property
    def own(self) -> Address:
        """An address of klamm's at which no node is."""
        return Address(0, self.klamm.host, self.klamm.port + 50)

    def standing(self, kind: str, node_id: int) -> Address:
        """klamm's address for a node: of 99 ports, brokers take the first and controllers the last."""
        first, slot = self.klamm.port + 1, node_id % 99
        return Address(node_id, self.klamm.host, first + slot if kind == "broker" else first + 98 - slot)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    scripts: Scripts = {}
    log = tmp_path_factory.mktemp("answers") / "klamm.log"
    with scripted(scripts) as (host, port):
        hosts = [f"[{name}]" if ":" in name else name for name in NAMES]
        found = [f"--map={each}:{its_port}={host}:{port}" for each in hosts for its_port in PORTS]
        with klamm_in_front_of(f"{host}:{port}", "127.0.0.1", log, *found, foreseen=FORESEEN) as klamm:
            yield Ground(klamm, scripts)


@st.composite
def conversations(draw: st.DrawFn, ground: Ground) -> Conversation:
    numbers, batches = count(), []
    answers = st.lists(any_answer(ground.standing, ground.own), min_size=1, max_size=3)
    for _ in range(draw(st.integers(1, 3))):
        batch = [one for one in draw(answers) for _ in range(draw(st.sampled_from([1, 1, 2])))]
        stream = b"".join(frame(next(numbers), one.sent.came) for one in batch)
        ends = sorted({*draw(st.lists(st.integers(1, len(stream)), max_size=4)), len(stream)})
        pieces = [stream[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        batches.append((batch, pieces))
    return batches


def frame(number: int, rest: bytes) -> bytes:
    return (len(rest) + 4).to_bytes(4, "big") + number.to_bytes(4, "big") + rest


@settings(max_examples=300)
@given(data=st.data())
def test_a_client_reads_what_the_server_says_but_for_addresses(ground: Ground, data: st.DataObject) -> None:
    conversation: Conversation = data.draw(conversations(ground))
    client_id = f"stranger-{next(client_ids)}"
    ground.scripts[client_id.encode()] = [Batch(len(batch), pieces) for batch, pieces in conversation]
    batches = [batch for batch, _ in conversation]
    answers = [answer for batch in batches for answer in batch]
    frames, rest = asked(ground.klamm.address, client_id, batches)
    for number, (answer, got) in enumerate(zip(answers, frames, strict=False)):
        assert got[:4] == number.to_bytes(4, "big")
        if answer.large and answer.lists and (answer.sent.names or got[4:] != answer.sent.goes):
            assert len(got) == len(answer.sent.came) + 4
            assert got[4:][:BLANKED] == answer.sent.came[:BLANKED]
            assert addresses_in(got[4:], answer) == []
        elif answer.large and not answer.lists:
            assert got[4:] == answer.sent.came
        else:
            assert not answer.sent.refused, "an address could get past"
            assert got[4:] == answer.sent.goes
    if len(frames) < len(answers):
        ended = answers[len(frames)]
        assert ended.sent.refused or (ended.large and ended.lists), "the connection was closed"
        assert b"internal" not in rest
        assert ended.large or rest == b""
    else:
        assert rest == b""


def asked(address: tuple[str, int], client_id: str, batches: list[list[Answer]]) -> tuple[list[bytes], bytes]:
    """The answers that come whole, without their sizes, and what comes of one in which the connection ends. A
    batch is asked for when the one before has come.
    """
    frames: list[bytes] = []
    got, numbers = b"", count()
    with socket.create_connection(address, timeout=PATIENCE_S) as client, suppress(ConnectionError):
        for batch in batches:
            client.sendall(b"".join(request(one, next(numbers), client_id) for one in batch))
            if batch is batches[-1]:
                client.shutdown(socket.SHUT_WR)
            due = len(frames) + len(batch)
            while len(frames) < due or batch is batches[-1]:
                data = client.recv(1 << 20)
                if not data:
                    return frames, got
                got += data
                while len(got) >= 4 and len(got) >= 4 + (size := int.from_bytes(got[:4], "big")):
                    frames.append(got[4 : 4 + size])
                    got = got[4 + size :]
    return frames, got


def request(answer: Answer, number: int, client_id: str) -> bytes:
    values: dict[str, Any] = {"acks": -1} if answer.api.name == "Produce" else {}
    body = encode(values, answer.api.key, answer.version, "request")
    return request_frame(answer.api, answer.version, number, client_id, body)


def addresses_in(rest: bytes, answer: Answer) -> list[Any]:
    """The endpoints at the end of an answer, as far as a client finds them."""
    header = read_response_header(b"\0" * 4 + rest, response_header_version(answer.api, answer.version))
    try:
        values = decode(rest[header.size - 4 :], answer.api.key, answer.version, "response")
    except DecodeError:
        return []
    return list(values["node_endpoints"])
