"""Which connections a rule is about: their cluster, broker and client, also before a frame was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.decoders import API
from klamm.rules.engine import Engine, Gate
from klamm.rules.file.explain import explain
from klamm.rules.file.json_schema import json_schema
from klamm.rules.file.presence import Known, unmet
from klamm.rules.file.rule_file import RuleFile, load
from klamm.rules.frame import Frame

HEARTBEAT = 12


def loaded(folder: Path, *rules: str) -> RuleFile:
    text = "".join(f"  - {rule}\n" for rule in rules)
    (folder / "rules.yaml").write_text(f"rules:\n{text}")
    return load(str(folder / "rules.yaml"))


def mistakes(folder: Path, rule: str) -> list[str]:
    found = loaded(folder, rule)
    assert found.rules == () or not found.mistakes
    return [str(mistake).removeprefix(f"{folder}/rules.yaml:") for mistake in found.mistakes]


def engine(folder: Path, *rules: str) -> Engine:
    found = loaded(folder, *rules)
    assert found.mistakes == []
    made = Engine(seed=1)
    made.load(found.rules, 0)
    return made


def refused(made: Engine, cluster: str, broker: str = "2", client: str = "10.0.0.7:5000") -> bool:
    """Is such a connection refused as it opens?"""
    peer = made.peer(cluster, broker, client)
    frame = Frame(API["ApiVersions"], 0, "request", b"", None, peer, 0)
    return bool(Gate(made, peer, lambda _: None).connecting(frame, 0))


def met(made: Engine, cluster: str, client_id: str = "shop") -> bool:
    """Does a rule look at such a client's heartbeats?"""
    peer = made.peer(cluster, "2", "10.0.0.7:5000")
    return bool(made.concerned(API[HEARTBEAT], 3, "request", peer, client_id))


@pytest.mark.parametrize(
    ("cluster", "wanted"),
    [("a", {"a"}), ("eu-*", {"eu-1", "eu-2"}), ("[a, eu-1]", {"a", "eu-1"}), ("['!a']", {"eu-1", "eu-2"})],
)
def test_a_rule_with_a_cluster_is_for_that_cluster_alone(
    tmp_path: Path, cluster: str, wanted: set[str]
) -> None:
    clusters = {"a", "eu-1", "eu-2"}
    on_connect = engine(tmp_path, f"{{cluster: {cluster}, broker: 2, event: connect, down: true}}")
    assert {name for name in clusters if refused(on_connect, name)} == wanted
    on_frames = engine(tmp_path, f"{{cluster: {cluster}, broker: 2, down: true}}")
    assert {name for name in clusters if met(on_frames, name)} == wanted


def test_a_cluster_is_explained_and_in_the_schema(tmp_path: Path) -> None:
    found = loaded(tmp_path, "{cluster: [a, eu-*], broker: 2, down: true}")
    assert "to the broker 2, of the cluster a or eu-*" in "\n".join(explain(found))
    assert "cluster" in json_schema()["properties"]["rules"]["items"]["properties"]


def test_where_on_connections_is_asked_of_what_is_known_as_they_open(tmp_path: Path) -> None:
    where = 'cluster == "a" and broker == "2" and startswith(client, "10.0.") and client_port > 1024'
    made = engine(tmp_path, f"{{event: connect, where: '{where}', down: true}}")
    assert refused(made, "a")
    assert not refused(made, "b")
    assert not refused(made, "a", broker="1")
    assert not refused(made, "a", client="10.1.0.7:5000")


@pytest.mark.parametrize(
    ("where", "column", "name"),
    [
        ('client_id == "shop"', 29, "client_id"),
        ("broker == '2' and acks == -1", 47, "acks"),
        ("size > 3", 29, "size"),
    ],
)
def test_where_on_connections_refuses_what_a_connection_has_not_said_yet(
    tmp_path: Path, where: str, column: int, name: str
) -> None:
    assert mistakes(tmp_path, f"{{event: connect, where: {where}, down: true}}") == [
        f"2:{column}: rules[0].where: {name} is not known as a connection opens, only cluster, broker, "
        "client, client_port, connection, principal are: ask for it on frames, without event: connect"
    ]


@pytest.mark.parametrize(
    "client", ["orders-*", "'!orders-*'", "'10.0.0.7, orders-*'", "billing", "app-10.0.0.7"]
)
def test_a_client_id_on_connections_is_refused_with_what_to_write(tmp_path: Path, client: str) -> None:
    (mistake,) = mistakes(tmp_path, f"{{event: connect, client: {client}, down: true}}")
    pattern = client.strip("'").rpartition(", ")[2]
    assert mistake.endswith(
        f"rules[0].client: {pattern!r} is no address, and a connection that opens has not said its client "
        "id: leave event: connect out, and the rule acts on the client's first request; or write an address, "
        "such as 10.0.0.7"
    )


@pytest.mark.parametrize("client", ["10.0.0.0/8", "'!10.0.0.7/16'", "'2001:db8::/32'"])
def test_a_network_on_connections_is_refused_with_what_to_write(tmp_path: Path, client: str) -> None:
    (mistake,) = mistakes(tmp_path, f"{{event: connect, client: {client}, refuse: true}}")
    told = f"{client.strip(chr(39))!r} is a network: write patterns of its addresses, such as 10.1.*"
    assert mistake.endswith(f"rules[0].client: {told}")


def test_a_client_id_with_an_action_for_connections_alone_is_told_of_another_action(tmp_path: Path) -> None:
    (mistake,) = mistakes(tmp_path, "{client: orders-*, refuse: true}")
    assert mistake.endswith(
        "has not said its client id: write down: true or disconnect: {when: before} in place of refuse, "
        "without event: connect, and the rule acts on the client's first request; or write an address, such "
        "as 10.0.0.7"
    )


@pytest.mark.parametrize(
    "client", ["10.0.0.7", "10.0.*", "'*'", "fe80::1", "'2001:db8:*'", "'!10.0.0.9'", "'127.0.0.?'"]
)
def test_addresses_on_connections_are_taken(tmp_path: Path, client: str) -> None:
    assert mistakes(tmp_path, f"{{event: connect, client: {client}, down: true}}") == []


def test_an_address_of_ipv6_is_that_without_brackets(tmp_path: Path) -> None:
    made = engine(tmp_path, "{event: connect, client: 'fe80::1', down: true}")
    assert refused(made, "a", client="[fe80::1]:5000")


@pytest.mark.parametrize("per", ["client", "topic", "group"])
def test_connections_that_open_are_not_counted_per_what_they_have_not_said(tmp_path: Path, per: str) -> None:
    (mistake,) = mistakes(tmp_path, f"{{event: connect, per: {per}, times: 1, down: true}}")
    assert mistake.endswith(
        f"rules[0].per: a connection that opens has no {per} yet: leave it out, or count per connection"
    )


CLUSTERS = {
    "a": frozenset({"1", "2"}),
    "b": frozenset({"2", "10", "9", "controller 1"}),
    "new": frozenset[str](),
}


@pytest.mark.parametrize(
    ("rule", "known", "messages"),
    [
        ("{broker: 2, cluster: a, down: true}", CLUSTERS, []),
        ("{broker: 2, cluster: '*', down: true}", CLUSTERS, []),
        ("{broker: 10, down: true}", CLUSTERS, []),
        ("{broker: bootstrap, down: true}", CLUSTERS, []),
        ("{down: true}", CLUSTERS, []),
        ("{broker: 7, down: true}", CLUSTERS, []),  # the nodes of `new` are not known yet
        ("{broker: controller 7, cluster: a, down: true}", CLUSTERS, []),  # nor are the controllers of a
        ("{broker: 7, down: true}", {}, []),
        (
            "{broker: 2, down: true}",
            CLUSTERS,
            ["broker 2 is in the clusters a and b: choose with cluster: a, or take all with cluster: '*'"],
        ),
        (
            "{broker: [1, 7], cluster: '[ab]', down: true}",
            CLUSTERS,
            ["there is no broker 7: a has 1 and 2; b has 2, 9 and 10"],
        ),
        (
            "{broker: controller 7, cluster: b, down: true}",
            CLUSTERS,
            ["there is no controller 7: b has controller 1"],
        ),
        (
            "{cluster: bb, down: true}",
            CLUSTERS,
            ["there is no cluster 'bb': klamm knows a, b and new"],
        ),
    ],
)
def test_what_no_cluster_has_is_told_where_it_is_known(
    tmp_path: Path, rule: str, known: Known, messages: list[str]
) -> None:
    (made,) = loaded(tmp_path, rule).rules
    assert [reason for _, reason in unmet(made, known)] == messages


ORDERS = "User:CN=orders,O=Example"


@pytest.mark.parametrize(
    ("principal", "wanted"),
    [
        (f"'{ORDERS}'", {ORDERS}),
        ("'User:CN=orders,*'", {ORDERS, "User:CN=orders,O=Other"}),
        (f"['{ORDERS}', 'User:CN=a']", {ORDERS, "User:CN=a"}),
        ("'*'", {ORDERS, "User:CN=orders,O=Other", "User:CN=a"}),
        (f"'!{ORDERS}'", {"User:CN=orders,O=Other", "User:CN=a", None}),
        ("User:CN=orders", set()),
    ],
)
@pytest.mark.parametrize("more", [0, 20], ids=["one rule", "many rules"])
def test_a_rule_with_a_principal_is_for_its_clients_alone(
    tmp_path: Path, principal: str, wanted: set[str | None], more: int
) -> None:
    others = [f"{{api: Heartbeat, client: other-{n}, delay: 1ms}}" for n in range(more)]
    made = engine(tmp_path, f"{{api: Heartbeat, principal: {principal}, delay: 1ms}}", *others)
    found = set()
    for one in (ORDERS, "User:CN=orders,O=Other", "User:CN=a", None):
        peer = made.peer("a", "2", "10.0.0.7:5000", 1, one)
        if made.concerned(API[HEARTBEAT], 3, "request", peer, "shop"):
            found.add(one)
    assert found == wanted


def test_a_connection_is_refused_by_its_principal_as_it_opens(tmp_path: Path) -> None:
    for rule in (
        f"{{event: connect, principal: '{ORDERS}', down: true}}",
        f"{{event: connect, where: 'principal == \"{ORDERS}\"', down: true}}",
    ):
        made = engine(tmp_path, rule)
        for principal, is_refused in ((ORDERS, True), ("User:CN=a", False), (None, False)):
            peer = made.peer("a", "2", "10.0.0.7:5000", 1, principal)
            frame = Frame(API["ApiVersions"], 0, "request", b"", None, peer, 0)
            assert bool(Gate(made, peer, lambda _: None).connecting(frame, 0)) is is_refused


def test_a_principal_is_explained_and_one_that_is_none_is_a_mistake(tmp_path: Path) -> None:
    found = loaded(tmp_path, f"{{principal: ['{ORDERS}', 'User:CN=a'], down: true}}")
    assert f"of the principal {ORDERS} or User:CN=a" in "\n".join(explain(found))
    assert mistakes(tmp_path, "{principal: 'CN=orders,O=Example', down: true}") == [
        "2:17: rules[0].principal: 'CN=orders,O=Example' is no principal: "
        "write it as Kafka's log does, User:CN=orders,O=Example"
    ]
