"""Any text in every text field of every layout: the log, the admin API and the commands write it as text."""

from __future__ import annotations

import json
import zlib
from random import Random
from time import time

import pytest

from klamm.decoders import API, encode
from klamm.decoders.interpret import Layout
from klamm.proxy.admin.api.live import line
from klamm.proxy.control.exchange import Bodies, seen
from klamm.proxy.log.lines import EXCHANGE, Entry, console_line, json_line
from klamm.rules.frame import Frame, Peer
from tests.decoders.hostile import LAYOUTS, struct_of

NEWEST = [of for of in LAYOUTS if of.version == API[of.api].versions.last]
PEER = Peer("main", "1", "10.0.0.7:50000", "main/1/10.0.0.7/1", 1)


def frame(of: Layout, client_id: str, request: Frame | None = None) -> Frame:
    random = Random(zlib.crc32(str((of.api, of.side)).encode()))
    values = struct_of(of.fields, of.version, False, random)
    body = encode(values, API[of.api].key, of.version, of.side)
    return Frame(API[of.api], of.version, of.side, body, client_id, PEER, 1, request)


@pytest.mark.parametrize("bodies", ["none", "values", "raw"])
def test_a_line_of_the_live_stream_is_json(bodies: Bodies) -> None:
    for of in NEWEST:
        if of.side == "request":
            request = frame(of, "app\udcff\x1b")
            answer = next(other for other in NEWEST if (other.api, other.side) == (of.api, "response"))
            assert json.loads(line(seen(request, frame(answer, "app", request)), bodies).decode())["exchange"]


@pytest.mark.parametrize(
    "write", [json_line, lambda entry: console_line(entry, False)], ids=["JSON", "console"]
)
def test_a_line_of_the_log_is_one_line_of_text(write: object) -> None:
    for text in ("\udcff\udcfe", "a\nb", "\x1b[2J", "\u202e", "k" * 40_000, "\x00", "\ud800"):
        fields = {"api": "Fetch", "version": 1, "client_id": text, "topics": {text: [1]}, "group": text}
        for entry in (
            Entry(time(), EXCHANGE, "info", "", fields),
            Entry(time(), "event", "info", text, fields),
        ):
            written = write(entry).decode()  # type: ignore[operator]
            assert written.endswith("\n")
            assert written[:-1].isprintable()
