"""A name that the admin API does not know: the answer says which names it knows."""

import pytest

from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api


@pytest.mark.parametrize(
    ("method", "path", "body", "reason"),
    [
        (
            "POST",
            "/v1/capture",
            b'{"path":"/captured"}',
            "there is no field 'path'; known are folder, records, filter",
        ),
        ("POST", "/v1/capture", b'{"foldr":"/captured"}', "there is no field 'foldr'; did you mean folder?"),
        ("GET", "/v1/live?were=x", None, "there is no parameter 'were'; did you mean where?"),
    ],
)
@on_uvloop
async def test_an_unknown_name_is_refused_with_those_that_there_are(
    method: str, path: str, body: bytes | None, reason: str
) -> None:
    async with api() as it:
        status, answer = await it.send(method, path, body, Content_Type="application/json")
        assert (status, answer["error"]) == (400, reason)
