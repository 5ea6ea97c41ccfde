"""Frames to decode, and what `klamm decode` prints of them."""

import json
from typing import Any

import pytest

from klamm.cli import FINE, main
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame, response_frame

Captured = pytest.CaptureFixture[str]


def request(
    name: str, version: int, values: dict[str, Any], correlation_id: int = 7, client_id: str | None = "app"
) -> bytes:
    body = encode(values, name, version, "request")
    return request_frame(API[name], version, correlation_id, client_id, body)


def response(name: str, version: int, values: dict[str, Any], correlation_id: int = 7) -> bytes:
    return response_frame(API[name], version, correlation_id, encode(values, name, version, "response"))


def printed(capsys: Captured, *words: str, code: int = FINE) -> str:
    assert main(["decode", *words]) == code
    return capsys.readouterr().out


def objects(capsys: Captured, *words: str, code: int = FINE) -> list[Any]:
    return [json.loads(line) for line in printed(capsys, "--json", *words, code=code).splitlines()]
