"""Requests in parts for the brokers that answer them, and sessions that follow leaders."""

from typing import Any

import pytest

from klamm.decoders import API
from klamm.replay.dividing import GROUPS, LEADERS, answering, divided, transactional_id
from klamm.replay.renaming import About
from klamm.replay.sessions import Sessions, in_session

FETCH, SHARE, ACKNOWLEDGE = API["Fetch"], API["ShareFetch"], API["ShareAcknowledge"]
HOME = 99


def odd(about: About) -> int:
    return int(about["partition"]) % 2


def parts(*numbers: int) -> list[dict[str, Any]]:
    return [{"partition": number, "fetch_offset": 10 * number} for number in numbers]


def fetch(
    epoch: int, *topics: tuple[str, list[int]], session: int = 5, forgotten: Any = ()
) -> dict[str, Any]:
    return {
        "session_id": session,
        "session_epoch": epoch,
        "topics": [{"topic": name, "partitions": parts(*numbers)} for name, numbers in topics],
        "forgotten_topics_data": [{"topic": name, "partitions": numbers} for name, numbers in forgotten],
    }


def asked(requests: dict[int, dict[str, Any]]) -> dict[int, tuple[int, int, dict[str, list[int]]]]:
    """Broker -> session, epoch, topic -> partitions."""
    return {
        broker: (
            values["session_id"],
            values["session_epoch"],
            {one["topic"]: [part["partition"] for part in one["partitions"]] for one in values["topics"]},
        )
        for broker, values in requests.items()
    }


def test_each_leader_is_asked_for_its_partitions() -> None:
    data = [{"name": "a", "partition_data": [{"index": n, "records": b""} for n in range(3)]}]
    data.append({"name": "b", "partition_data": [{"index": 1, "records": b"b"}]})
    found = divided(API["Produce"].request, 9, {"acks": -1, "topic_data": data}, LEADERS, odd)
    names = {
        leader: [
            (topic["name"], [part["index"] for part in topic["partition_data"]])
            for topic in one["topic_data"]
        ]
        for leader, one in found.items()
    }
    assert names == {0: [("a", [0, 2])], 1: [("a", [1]), ("b", [1])]}
    assert {one["acks"] for one in found.values()} == {-1}


def test_each_coordinator_is_asked_for_its_groups() -> None:
    def length(about: About) -> int:
        return len(about["group"])

    found = divided(API["DescribeGroups"].request, 0, {"groups": ["a", "bb", "c"]}, GROUPS, length)
    assert found == {1: {"groups": ["a", "c"]}, 2: {"groups": ["bb"]}}
    groups = [{"group_id": name, "topics": None} for name in ("a", "bb")]
    found = divided(API["OffsetFetch"].request, 8, {"groups": groups, "require_stable": True}, GROUPS, length)
    assert found == {n + 1: {"groups": [groups[n]], "require_stable": True} for n in (0, 1)}
    alone = {"group_id": "a", "topics": None}
    assert divided(API["OffsetFetch"].request, 7, alone, GROUPS, length) == {1: alone}


def test_what_names_no_part_goes_to_nobody_in_particular() -> None:
    assert divided(API["Produce"].request, 9, {"acks": 1, "topic_data": []}, LEADERS, odd) == {}
    assert divided(API["Metadata"].request, 9, {"topics": None}, LEADERS, odd) == {}


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("Produce", "leader"),
        ("ShareFetch", "leader"),
        ("OffsetCommit", "group"),
        ("TxnOffsetCommit", "group"),
        ("ConsumerGroupHeartbeat", "group"),
        ("AddOffsetsToTxn", "transaction"),
        ("InitProducerId", "transaction"),
        ("Metadata", "any"),
        ("CreateTopics", "any"),
        ("ListGroups", "any"),
    ],
)
def test_who_answers_follows_from_the_tables(name: str, who: str) -> None:
    assert answering(API[name], API[name].versions.last) == who


def test_the_transactional_id_is_found_in_every_version() -> None:
    assert transactional_id({"transactional_id": None}) is None
    assert transactional_id({"v3_and_below_transactional_id": "t"}) == "t"
    assert transactional_id({"transactions": [{"transactional_id": "t"}]}) == "t"
    assert transactional_id({"transactional_ids": ["t", "u"]}) == "t"


class Fetching:
    """A recorded connection's session, and brokers that answer it with sessions of their own."""

    def __init__(self) -> None:
        self.sessions = Sessions()

    def __call__(self, values: dict[str, Any], owner: Any = odd, **refusing: Any) -> Any:
        assert in_session(FETCH, values)
        requests = self.sessions.requests(FETCH, 11, values, owner, HOME)
        for broker, one in requests.items():
            ended = one["session_epoch"] == -1
            answer = {"error_code": 0, "session_id": 0 if ended else 100 + broker} | refusing
            self.sessions.answered(FETCH, broker, one, answer)
        return asked(requests)


def test_a_session_is_one_with_each_leader() -> None:
    fetching = Fetching()
    assert fetching(fetch(0, ("t", [0, 1, 2]), session=0)) == {
        0: (0, 0, {"t": [0, 2]}),
        1: (0, 0, {"t": [1]}),
    }
    assert fetching(fetch(1, ("t", [2]))) == {0: (100, 1, {"t": [2]}), 1: (101, 1, {})}
    gone = fetching(fetch(2, forgotten=[("t", [0, 2])]))
    assert gone == {0: (100, 2, {}), 1: (101, 2, {})}
    assert fetching(fetch(3)) == {1: (101, 3, {})}  # nothing is left for the other
    assert fetching(fetch(-1)) == {0: (100, -1, {}), 1: (101, -1, {})}
    assert fetching.sessions.open == {}


def test_a_leader_that_comes_later_is_told_all_that_is_its() -> None:
    fetching = Fetching()
    fetching(fetch(0, ("t", [0, 2]), session=0), lambda about: 1)
    moved = fetching(fetch(1), lambda about: 2)
    assert moved == {2: (0, 0, {"t": [0, 2]})}


def test_a_session_that_a_broker_dropped_begins_anew_with_all_it_held() -> None:
    fetching = Fetching()
    fetching(fetch(0, ("t", [0, 2]), session=0))
    assert fetching(fetch(1, ("t", [2])), error_code=70) == {0: (100, 1, {"t": [2]})}
    (again,) = fetching(fetching.sessions.again(FETCH, fetch(1, ("t", [2])))).values()
    assert (again[0], again[1], sorted(again[2]["t"])) == (0, 0, [0, 2])


def test_a_fetch_without_a_session_is_none() -> None:
    assert not in_session(FETCH, fetch(-1, ("t", [0]), session=0))
    assert not in_session(FETCH, {"topics": []})
    assert not in_session(API["Produce"], {})


def share(epoch: int, *numbers: int, acknowledged: bool = True) -> dict[str, Any]:
    acks = [{"first_offset": 0, "last_offset": 1, "acknowledge_types": [1]}] if acknowledged else []
    rows = [{"partition_index": n, "acknowledgement_batches": acks} for n in numbers]
    topics = [{"topic_id": b"t" * 16, "partitions": rows}] if rows else []
    return {"share_session_epoch": epoch, "topics": topics, "forgotten_topics_data": []}


def epochs(
    sessions: Sessions, api: Any, values: dict[str, Any], by: int = 1, **refusing: Any
) -> dict[int, int]:
    requests = sessions.requests(api, 1, values, odd, HOME, by)
    for broker, one in requests.items():
        sessions.answered(api, broker, one, {"error_code": 0} | refusing)
    return {broker: one["share_session_epoch"] for broker, one in requests.items()}


def test_share_sessions_count_their_epochs_with_each_leader() -> None:
    acknowledged = {name: value for name, value in share(1, 1).items() if name != "forgotten_topics_data"}
    sessions = Sessions()
    assert epochs(sessions, SHARE, share(0, 0, 1)) == {0: 0, 1: 0}
    assert epochs(sessions, ACKNOWLEDGE, acknowledged) == {1: 1}
    assert epochs(sessions, SHARE, share(2)) == {0: 1, 1: 2}
    assert epochs(sessions, SHARE, share(-1, 0)) == {0: -1, 1: -1}


def test_a_member_has_one_share_session_with_a_broker_whatever_connections_it_had() -> None:
    sessions = Sessions()
    assert epochs(sessions, SHARE, share(0, 0, 2), by=1) == {0: 0}
    assert epochs(sessions, SHARE, share(0, 4), by=2) == {0: 1}
    assert epochs(sessions, SHARE, share(1), by=1) == {0: 2}
    (left,) = sessions.requests(SHARE, 1, share(-1, 2), odd, HOME, 1).values()
    assert left["share_session_epoch"] == 3  # the other connection's goes on
    assert [one["partitions"] for one in left["forgotten_topics_data"]] == [[0]]
    assert epochs(sessions, SHARE, share(-1), by=2) == {0: -1}


def test_a_new_share_session_acknowledges_nothing() -> None:
    sessions = Sessions()
    epochs(sessions, SHARE, share(0, 0), error_code=122)
    (anew,) = sessions.requests(SHARE, 1, share(1, 0), odd, HOME, 1).values()
    (part,) = anew["topics"][0]["partitions"]
    assert (anew["share_session_epoch"], part["acknowledgement_batches"]) == (0, [])
