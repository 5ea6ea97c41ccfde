"""`/api/traffic`: what a page may ask, and what it is told otherwise."""

from __future__ import annotations

import pytest

from tests.dashboards.web.test_server import Fake, served


@pytest.mark.asyncio
async def test_the_answer_is_json_whatever_clients_call_themselves() -> None:
    async with served(Fake()) as http:
        asked = {"page": "p1", "table": "client", "sort": "p99", "search": "<script>", "period": "60"}
        async with http.get("/api/traffic", params=asked) as answer:
            assert (answer.status, answer.content_type) == (200, "application/json")
            found = await answer.json()
        assert found["rows"] == [{"kind": "client", "cluster": "kafka", "name": "<script>"}]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ({"table": "cleint"}, 400, "cleint"),
        ({"sort": "speed"}, 400, "speed"),
        ({"since": "yesterday"}, 400, "since"),
        ({"nonsense": "1"}, 400, "nonsense"),
        ({"where": "acsk == 1"}, 422, "did you mean acks?"),
    ],
)
async def test_what_cannot_be_asked_is_refused_with_its_reason(
    asked: dict[str, str], status: int, told: str
) -> None:
    async with served(Fake()) as http, http.get("/api/traffic", params=asked) as answer:
        assert answer.status == status
        assert told in (await answer.json())["error"]


@pytest.mark.asyncio
async def test_a_klamm_that_does_not_answer_is_told() -> None:
    source = Fake()
    source.away = True
    async with served(source) as http, http.get("/api/traffic") as answer:
        assert (answer.status, (await answer.json())["error"]) == (502, "no klamm answers at here")
