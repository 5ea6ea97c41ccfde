"""Topic rules on Fetch where a session hides the topics (KIP-227)."""

from dataclasses import replace
from typing import Any

import pytest

from klamm.decoders import API, decode
from klamm.decoders.headers import request_frame
from klamm.proxy.session.effects import Send
from klamm.proxy.session.session import Session
from klamm.rules.actions import ACTIONS
from klamm.rules.engine import Engine
from klamm.rules.glob import Glob
from klamm.rules.rule import Rule
from tests.proxy.traffic import ADVERTISE, TOPIC_ID, exchange, ground

STORAGE_ERROR, NO_SESSION = 56, 70
VERSIONS = [7, 11, 12, 13, 17]


def names(version: int) -> dict[str, Any]:
    return {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "orders"}


def made(topic: str) -> Session:
    engine = Engine(seed=1)
    engine.load([Rule("r", (ACTIONS["error"](STORAGE_ERROR),), keys=frozenset({1}), topic=Glob(topic))], 0)  # type: ignore[call-arg]
    at = replace(ground(), engine=engine)
    at.topology.learn_topic(TOPIC_ID, "orders")
    return Session(at, "1", ADVERTISE, "1.2.3.4:5")


def asked(session: Session, version: int, epoch: int, topics: list[Any], answer: list[Any]) -> Any:
    """The response that a client gets to a Fetch within session 5."""
    request = {"session_id": 5 if epoch else 0, "session_epoch": epoch, "topics": topics}
    one = exchange("Fetch", version, request, {"session_id": 5, "responses": answer}, epoch + 1)
    sent: Any = session.from_client(one.request, 0)
    if sent is not one.request and sent[0].to == "client":
        data = sent[0].data
    else:
        assert one.answer is not None
        back: Any = session.from_broker(one.answer, 0)
        data = one.answer if back is one.answer else b"".join(effect.data for effect in back)
    start = 9 if version >= 12 else 8
    return decode(data[start:], "Fetch", version, "response")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_is_heard_for_a_partition_of_which_the_answer_says_nothing(version: int) -> None:
    session = made("orders")
    topics = [{**names(version), "partitions": [{"partition": 0}, {"partition": 3}]}]
    for epoch, listed in ((0, topics), (1, []), (2, [])):
        response = asked(session, version, epoch, listed, [])
        assert response["session_id"] == 5
        [row] = response["responses"]
        assert {name: row[name] for name in names(version)} == names(version)
        errors = {part["partition_index"]: part["error_code"] for part in row["partitions"]}
        assert errors == {0: STORAGE_ERROR, 3: STORAGE_ERROR}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_without_the_topic_is_left_alone(version: int) -> None:
    session = made("payments")
    topics = [{**names(version), "partitions": [{"partition": 0}]}]
    for epoch, listed in ((0, topics), (1, [])):
        assert asked(session, version, epoch, listed, [])["responses"] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_that_began_unseen_is_begun_anew(version: int) -> None:
    response = asked(made("orders"), version, 4, [], [])
    assert (response["error_code"], response["responses"]) == (NO_SESSION, [])


def test_a_fetch_that_cannot_be_read_goes_on_as_it_is() -> None:
    session = made("orders")
    sent = request_frame(API["Fetch"], 12, 1, "client", b"\x7f" * 40)
    onward, problem = session.from_client(sent, 0)
    assert onward == Send("broker", sent)
    assert (problem.kind, problem.api) == ("undecodable", "Fetch")
