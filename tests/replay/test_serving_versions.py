"""Any version of any API is answered in its own layout."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.decoders import API
from klamm.decoders.schema import Field, default_of, members
from klamm.replay.serving.plays import PLAYED
from tests.fakes.waiting import on_uvloop
from tests.replay.played import Values, playing, session

TOKENS_FOLLOW = {"SaslHandshake"}  # its version 0
OTHERS = [api for api in API if api.name not in PLAYED and api.response]


def one_of_each(fields: tuple[Field, ...], version: int) -> Values:
    """A body with one element in each array."""
    return {f.name: _value(f, version) for f in fields if version in f.versions}


def _value(f: Field, version: int) -> Any:
    if f.kind not in ("array", "struct"):
        return b"" if f.kind == "records" else {"acks": 1}.get(f.name, default_of(f, version))
    if f.kind == "struct":
        return one_of_each(members(f), version) if f.default is not None else None
    if members(f):
        return [one_of_each(members(f), version)]
    return [{"string": "a", "uuid": bytes(16), "bytes": b""}.get(str(f.of), 0)]


@pytest.mark.parametrize("name", sorted(PLAYED - TOKENS_FOLLOW))
@on_uvloop
async def test_what_is_played_has_the_layout_of_every_version(name: str) -> None:
    api = API[name]
    async with playing(session().rows) as played:
        client = await played.client()
        for version in range(api.versions.first, api.versions.last + 1):
            await client.ask(name, version, one_of_each(api.request, version))
        assert not [line for line in played.log_lines if "closed" in line or "failed" in line]


@on_uvloop
async def test_what_was_recorded_at_one_version_is_told_at_every_other() -> None:
    talk = session()
    for api in OTHERS:
        newest = api.versions.last
        asked, response = one_of_each(api.request, newest), one_of_each(api.response, newest)
        talk.exchange(api.name, newest, asked, response)
    async with playing(talk.rows) as played:
        client = await played.client()
        for api in OTHERS:
            await client.ask(api.name, api.versions.last, one_of_each(api.request, api.versions.last))
        assert not played.log_lines
        for api in OTHERS:
            for version in range(api.versions.first, api.versions.last):
                await client.ask(api.name, version, one_of_each(api.request, version))
        assert not [line for line in played.log_lines if "closed" in line or "failed" in line]
