"""The guard of the admin API: which requests are answered, and which may change something."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.client import AsyncKlamm, Refused
from tests.fakes.waiting import on_uvloop
from tests.proxy.admin.admin_api import api

RULE = b'{"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}'
JSON = "application/json"
FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
CHANGES = (
    ("POST", "/v1/rules", RULE),
    ("POST", "/v1/rules/off", None),
    ("DELETE", "/v1/connections/1", None),
)


@on_uvloop
async def test_a_page_of_another_site_is_not_answered() -> None:
    async with api() as it:
        for headers in (
            {"Origin": "http://evil.example"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Origin": "null"},
        ):
            for method, path in (("GET", "/v1/rules"), ("POST", "/v1/rules/off")):
                status, problem = await it.send(method, path, None, **headers)
                assert (status, problem["error"]) == (403, "pages of other sites are not answered")
        assert it.log.of("changed") == []


@on_uvloop
async def test_a_name_of_another_site_that_leads_here_is_not_this_machine() -> None:
    async with api() as it:
        status, problem = await it.send("POST", "/v1/rules", RULE, Content_Type=JSON, Host="evil.example")
        assert (status, problem["error"].split(":")[0]) == (403, "'evil.example' is not this machine")
        assert (await it.send("GET", "/v1/rules", Host="localhost:1"))[0] == 200
        for path in ("/", "/healthz", "/readyz", "/metrics", "/v1/counters"):
            status, said = await it.send("GET", path, Host="evil.example")
            assert (status, said["error"].split(":")[0]) == (403, "'evil.example' is not this machine")


@pytest.mark.parametrize(
    "form", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
@on_uvloop
async def test_what_a_form_can_send_changes_nothing(form: str) -> None:
    async with api() as it:
        for path in ("/v1/rules", "/v1/rules/off"):
            assert (await it.send("POST", path, RULE, Content_Type=form))[0] == 415
        assert await it.klamm.rules() == []


@on_uvloop
async def test_a_page_of_klamms_own_address_is_answered() -> None:
    async with api() as it:
        own = f"http://{it.klamm.admin}"
        status, _ = await it.send(
            "POST", "/v1/rules", RULE, Content_Type=JSON, Origin=own, Sec_Fetch_Site="same-origin"
        )
        assert status == 201


@on_uvloop
async def test_what_is_read_only_cannot_be_changed() -> None:
    async with api(read_only=True) as it:
        for method, path, body in CHANGES:
            status, problem = await it.send(method, path, body, Content_Type=JSON)
            assert (status, problem["error"]) == (403, "klamm runs with --read-only: nothing can be changed")
        assert await it.klamm.rules() == []


@on_uvloop
async def test_a_token_is_needed_for_all_but_health_and_metrics() -> None:
    async with api(token="secret") as it:
        assert await it.klamm.rules() == []
        for path in ("/metrics", "/healthz", "/readyz", "/"):
            async with it.http.get(path) as answer:
                assert answer.status == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret"}):
            for path in ("/v1/rules", "/v1/counters", "/v1/openapi.json", "/v1/live"):
                assert (await it.send("GET", path, None, **headers))[0] == 401
        async with AsyncKlamm(it.klamm.admin, "wrong") as other:
            with pytest.raises(Refused, match="the token is missing or wrong"):
                await other.rules()


@on_uvloop
async def test_what_is_not_there_is_a_problem_in_json_too() -> None:
    async with api() as it:
        assert await it.send("GET", "/v1/nothing") == (404, {"error": "Not Found", "mistakes": []})
        assert (await it.send("TRACE", "/v1/rules"))[0] == 405
        assert (await it.send("POST", "/v1/rules", b"{", Content_Type=JSON))[0] == 400
        assert (await it.send("POST", "/v1/rules", b"[]", Content_Type=JSON))[0] == 400
        assert (await it.send("GET", "/v1/exchanges?limit=0"))[0] == 400
        assert (await it.send("GET", "/v1/exchanges?limit=1&limit=2"))[0] == 400


@pytest.mark.parametrize(
    ("method", "path", "why"),
    [
        ("POST", "/v1/drain?within_s=abc", "within_s must be a number, not 'abc'"),
        ("GET", "/v1/exchanges?limit=some", "limit must be a whole number, not 'some'"),
    ],
)
@on_uvloop
async def test_a_number_that_is_none_is_named(method: str, path: str, why: str) -> None:
    async with api() as it:
        assert await it.send(method, path, Content_Type=JSON) == (400, {"error": why, "mistakes": []})


def test_an_address_that_others_reach_needs_a_token(tmp_path: Path) -> None:
    from klamm.cli.running.config_file import load
    from klamm.settings.mistakes import ConfigError

    (tmp_path / "token").write_text("secret\n")
    file = tmp_path / "klamm.yaml"
    file.write_text("clusters: [{bootstrap: a:1}]\nadmin: 0.0.0.0:19091\n")
    advice = "add --admin-token-file FILE; for metrics and health alone there is --metrics HOST:PORT"
    with pytest.raises(ConfigError, match="see the traffic and change what klamm does: " + advice):
        load(str(file))
    file.write_text("clusters: [{bootstrap: a:1}]\nadmin: {listen: 0.0.0.0:19091, read_only: true}\n")
    with pytest.raises(ConfigError, match="can reach 0.0.0.0:19091, and see the traffic: " + advice):
        load(str(file))
    file.write_text("clusters: [{bootstrap: a:1}]\nadmin: {listen: 0.0.0.0:19091, token_file: token}\n")
    assert load(str(file)).admin.token_file == str(tmp_path / "token")
