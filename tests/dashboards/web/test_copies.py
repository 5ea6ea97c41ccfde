"""An exchange as text for other tools: each form is what those tools take."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from msgspec.structs import replace

from klamm.cli import FINE, main
from klamm.client.sightings import Sought
from klamm.client.types import Body, Exchange
from klamm.dashboards.web.chosen.copies import FORMS, LONGEST, NoCopy, copy
from klamm.dashboards.web.frames import frames_of
from klamm.dashboards.web.ruling.drafts import rule_of
from klamm.dashboards.web.ruling.forms import checked
from klamm.decoders import API
from klamm.decoders.schema import defaults
from klamm.rules.actions import ACTIONS
from klamm.rules.expressions import parse
from klamm.rules.file.rule_file import read_text
from tests.cli.decoded import Captured
from tests.dashboards.web.exchanges import exchange, fetch, heartbeat, produce, records

SPECIAL = "a*[b]?"


class Recorded:
    """A fixture `klamm` that remembers what a test asks of it."""

    def __init__(self) -> None:
        self.said: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*words: Any, **named: Any) -> Recorded:
            self.said.append((name, words, named))
            return self

        return call


@pytest.mark.parametrize("one", [produce(), heartbeat(), fetch(None)])
def test_the_filter_holds_for_exchanges_like_it(one: Exchange) -> None:
    assert parse(copy(one, "filter")).holds(*frames_of(one))


def test_the_rule_is_a_rule_file() -> None:
    text = copy(produce(), "rule")
    assert text == (
        "rules:\n  - {api: Produce, client: shop, topic: orders, error: NOT_LEADER_OR_FOLLOWER, times: 3}\n"
    )
    found = read_text(text, "the page", ACTIONS)
    assert (found.mistakes, len(found.rules)) == ([], 1)


def test_the_rule_has_the_error_of_the_exchange() -> None:
    assert rule_of(heartbeat(27))["error"] == "REBALANCE_IN_PROGRESS"
    assert rule_of(heartbeat())["error"] == "NOT_COORDINATOR"


def test_names_with_the_letters_of_patterns_select_themselves_only() -> None:
    (rule,) = read_text(copy(produce(topic=SPECIAL, client_id=SPECIAL), "rule"), "the page", ACTIONS).rules
    for pattern in (rule.topic, rule.client):
        assert pattern is not None
        assert pattern(SPECIAL)
        assert not pattern("aXb?")


@pytest.mark.parametrize("api", [api.name for api in API])
def test_every_api_has_a_rule_that_can_be_used(api: str) -> None:
    version = API[api].versions.last
    one = exchange(api, version, defaults(API[api].request, version), None)
    assert checked(rule_of(one)).mistakes == []


def test_the_test_asks_the_fixture_for_what_it_has() -> None:
    made: dict[str, Any] = {}
    exec(compile(copy(produce(), "test"), "test", "exec"), made)  # noqa: S102  # the text is under test
    fixture = Recorded()
    made["test_produce_of_shop_not_leader_or_follower"](fixture)
    inject, wait, wait_for = fixture.said
    selectors = {"client": "shop", "topic": "orders", "times": 3}
    assert inject == ("inject", ("Produce", "NOT_LEADER_OR_FOLLOWER"), selectors)
    assert wait == ("wait", (), {"hits": 1})
    assert (wait_for[0], wait_for[1]) == ("wait_for", ("Produce",))
    assert Sought.of("Produce", **wait_for[2])
    assert parse(wait_for[2]["where"]).holds(*frames_of(produce()))


def test_the_line_of_klamm_decode_reads_both_frames(capsys: Captured) -> None:
    words = shlex.split(copy(produce(correlation_id=12), "decode"))
    assert words[:2] == ["klamm", "decode"]
    assert main(words[1:]) == FINE
    told = capsys.readouterr().out
    assert "Produce v9 request" in told
    assert "Produce v9 response" in told
    assert "answers frame 1" in told
    assert "correlation_id: 12" in told


def test_an_answer_alone_is_decoded_as_what_it_is(capsys: Captured) -> None:
    words = shlex.split(copy(exchange("Heartbeat", 3, None, {"error_code": 27}), "decode"))
    assert words[3:] == ["--api", "Heartbeat", "--version", "3", "--side", "response"]
    assert main(words[1:]) == FINE
    assert "27 REBALANCE_IN_PROGRESS" in capsys.readouterr().out


def test_more_bytes_than_an_argument_takes_go_through_the_standard_input() -> None:
    line, text, end = copy(produce(records(bytes(LONGEST))), "decode").split("\n")
    assert (line, end) == ("klamm decode - <<'END'", "END")
    assert bytes.fromhex(text)


def test_without_bytes_there_is_no_such_line() -> None:
    secret = replace(produce(), request=Body(9, reason="it carries secrets"), response=None)
    with pytest.raises(NoCopy, match="no bytes are there: it carries secrets"):
        copy(secret, "decode")


def test_json_is_as_klamm_tail_prints_it() -> None:
    told = json.loads(copy(heartbeat(27), "JSON"))
    assert (told["api"], told["group"], told["errors"]) == (
        "Heartbeat",
        "billing",
        {"REBALANCE_IN_PROGRESS": 1},
    )
    assert told["request"]["values"]["member_id"] == "shop-1"
    assert told["response"]["values"] == {"throttle_time_ms": 0, "error_code": 27}
    assert told["request"]["raw"] is None


def test_another_form_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(NoCopy, match=f"'xml' is no form: {', '.join(FORMS)} are"):
        copy(produce(), "xml")
