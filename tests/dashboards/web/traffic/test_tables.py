"""Tables and the chosen node, of amounts that a test has made up."""

from __future__ import annotations

from typing import Any

import pytest

from klamm.dashboards.web.traffic.answers import Asked, Chosen, Latency
from klamm.dashboards.web.traffic.cells import (
    About,
    Amounts,
    Broker,
    Call,
    Cells,
    Counting,
    Opened,
    bounded,
    note,
)
from klamm.dashboards.web.traffic.chosen import chosen
from klamm.dashboards.web.traffic.rows import MOST_ROWS, Tables
from klamm.dashboards.web.traffic.where import FAILED
from klamm.rules.expressions import parse


def quantile(amounts: Amounts, share: float) -> Latency | None:
    """The highest bucket, as ms."""
    return Latency(float(max(amounts.latencies))) if amounts.latencies else None


def cells(bodies: bool = True) -> Cells:
    """Two clients of two brokers: app writes 10 times and fails twice, reader fetches 30 times."""
    made = Cells(Counting(quantile, bodies))
    wrote = made.call(Call("main", "app", "1", "Produce", 9))
    wrote.add(Amounts(8, 8, 800, 80, {("NOT_ENOUGH_REPLICAS", "broker"): 1}, {5: 8}, 0.04))
    made.call(Call("main", "app", "2", "Produce", 9)).add(Amounts(2, 2, 200, 20, {("NONE_SUCH", "klamm"): 1}))
    made.call(Call("main", "reader", "1", "Fetch", 15)).add(Amounts(30, 30, 300, 9000, {}, {500: 30}, 15.0))
    made.call(Call("main", "reader", "1", "Heartbeat", 4)).add(Amounts(4, 4, 40, 40, {}, {2: 4}, 0.01))
    if bodies:
        made.topic(About("main", "app", "orders", "Produce")).add(
            Amounts(10, 10, 5000, 0, {("E", "broker"): 1})
        )
        made.topic(About("main", "reader", "orders", "Fetch")).add(Amounts(30, 30, 0, 7000))
        note(made.groups, ("main", "reader"), "billing")
    else:
        made.topic(About("main", None, "orders", "Produce")).add(Amounts(10, 10))
    made.opened += [
        Opened(1, "10.0.0.1:1", "main", "app", "1", "librdkafka 2.6.0"),
        Opened(2, "10.0.0.1:2", "main", "app", "2", "librdkafka 2.6.0"),
        Opened(3, "10.0.0.2:1", "main", "reader", "1"),
    ]
    note(made.software, ("main", "app"), "librdkafka 2.6.0")
    made.brokers["main", "3"] = Broker("kafka-3:9092", False)
    return made


def names(asked: Asked, made: Cells | None = None) -> list[str]:
    return [row.name for row in Tables(made or cells()).shown(asked)[0]]


def whole(kind: Any, name: str, made: Cells | None = None, where: str = "") -> Chosen:
    found = chosen(Tables(made or cells()), Asked(kind=kind, cluster="main", name=name, where=where))
    assert found is not None
    return found


def test_the_sums_of_a_client_are_those_of_its_calls_and_the_worst_is_first() -> None:
    (app, reader), matching = Tables(cells()).shown(Asked())
    assert matching == 2
    assert (app.name, app.requests, app.request_bytes, app.response_bytes) == ("app", 10, 1000, 100)
    assert (app.errors, app.share, app.connections, app.software) == (2, 0.2, 2, "librdkafka 2.6.0")
    assert (reader.name, reader.requests, reader.errors, reader.share) == ("reader", 34, 0, 0.0)


def test_times_of_what_waits_in_the_broker_are_left_out_of_sums_but_not_of_their_api() -> None:
    reader = whole("client", "reader")
    assert reader.row.p99 == Latency(2.0)
    assert {(one.api, one.version): one.p99 for one in reader.apis} == {
        ("Fetch", 15): Latency(500.0), ("Heartbeat", 4): Latency(2.0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sort", "order", "expected"),
    [
        ("requests", "", ["reader", "app"]),
        ("requests", "up", ["app", "reader"]),
        ("name", "", ["app", "reader"]),
        ("name", "down", ["reader", "app"]),
        ("p99", "", ["app", "reader"]),
        ("share", "", ["app", "reader"]),
        ("response_bytes", "", ["reader", "app"]),
        ("connections", "up", ["reader", "app"]),
        ("software", "down", ["app", "reader"]),  # the one without a software is last in any order
        ("software", "up", ["app", "reader"]),
    ],
)
def test_each_column_sorts_both_ways(sort: Any, order: Any, expected: list[str]) -> None:
    assert names(Asked(sort=sort, order=order)) == expected


@pytest.mark.parametrize("sort", ["name", "requests", "errors", "p50", "clients", "connections"])
@pytest.mark.parametrize("table", ["client", "broker", "topic", "software"])
def test_every_table_takes_every_column(table: Any, sort: Any) -> None:
    assert names(Asked(table=table, sort=sort))


def test_numbers_in_names_count_as_numbers() -> None:
    made = Cells(Counting(quantile, True))
    for number in (10, 9, 1):
        made.call(Call("main", f"worker-{number}", "1", "Fetch", 1)).requests = 1
    assert names(Asked(sort="name"), made) == ["worker-1", "worker-9", "worker-10"]


@pytest.mark.parametrize(
    ("table", "search", "expected"),
    [
        ("client", "APP", ["app"]),
        ("client", "librdkafka 2.6", ["app"]),
        ("client", "main/rea", ["reader"]),
        ("client", "zzz", []),
        ("broker", "kafka-3", ["3"]),
        ("software", "rdk", ["librdkafka 2.6.0"]),
    ],
)
def test_a_search_looks_into_all_texts(table: Any, search: str, expected: list[str]) -> None:
    assert names(Asked(table=table, search=search)) == expected


def test_of_many_clients_the_first_are_shown_and_a_search_reaches_all() -> None:
    made = Cells(Counting(quantile, True))
    for number in range(5000):
        made.call(Call("main", f"client-{number}", "1", "Fetch", 1)).requests = number
    rows, matching = Tables(made).shown(Asked(sort="requests"))
    assert (len(rows), matching, rows[0].name) == (MOST_ROWS, 5000, "client-4999")
    rows, matching = Tables(made).shown(Asked(sort="requests", search="client-17"))
    assert matching == 111
    assert names(Asked(search="client-1717"), made) == ["client-1717"]


def test_of_many_edges_and_connections_the_first_are_told_and_the_number_of_the_others() -> None:
    made = Cells(Counting(quantile, True))
    for number in range(400):
        made.call(Call("main", f"client-{number}", "1", "Fetch", 1)).requests = 1 + number
        made.opened.append(Opened(number, "10.0.0.1:1", "main", f"client-{number}", "1"))
    found = whole("broker", "1", made)
    assert (len(found.edges), found.more_edges, found.edges[0].name) == (300, 100, "client-399")
    assert (len(found.links), found.more_links) == (50, 350)


def test_a_broker_without_traffic_is_there_and_says_where_it_is() -> None:
    rows, _ = Tables(cells()).shown(Asked(table="broker", sort="name"))
    assert [(row.name, row.requests, row.up) for row in rows] == [
        ("1", 42, None),
        ("2", 2, None),
        ("3", 0, False),
    ]
    assert (rows[2].at, rows[2].connections) == ("kafka-3:9092", 0)


def test_software_has_its_connections_and_clients_and_those_that_name_none_are_there() -> None:
    rows, _ = Tables(cells()).shown(Asked(table="software", sort="connections"))
    assert [(row.name, row.connections, row.clients) for row in rows] == [
        ("librdkafka 2.6.0", 2, 1), ("", 1, 1),
    ]  # fmt: skip


def test_a_client_has_edges_to_brokers_and_topics() -> None:
    found = whole("client", "app")
    edges = [(edge.kind, edge.name, edge.requests, edge.errors, edge.connections) for edge in found.edges]
    assert edges == [("broker", "1", 8, 1, 1), ("broker", "2", 2, 1, 1), ("topic", "orders", 10, 1, None)]
    assert found.edges[2].request_bytes == 5000
    assert [(one.error, one.api, one.origin, one.count) for one in found.errors] == [
        ("NONE_SUCH", "Produce", "klamm", 1), ("NOT_ENOUGH_REPLICAS", "Produce", "broker", 1),
    ]  # fmt: skip
    assert [(link.number, link.client, link.broker) for link in found.links] == [
        (1, "10.0.0.1:1", "1"), (2, "10.0.0.1:2", "2"),
    ]  # fmt: skip
    assert whole("client", "reader").groups == ["billing"]


def test_a_broker_and_a_topic_have_edges_to_clients() -> None:
    for kind, name in (("broker", "1"), ("topic", "orders")):
        found = whole(kind, name)
        assert [(edge.kind, edge.name) for edge in found.edges] == [("client", "reader"), ("client", "app")]
        assert sum(edge.requests or 0 for edge in found.edges) == found.row.requests


def test_a_source_without_bodies_leaves_out_what_it_cannot_know_and_says_so() -> None:
    topic = whole("topic", "orders", cells(bodies=False))
    assert (topic.row.requests, topic.row.request_bytes, topic.row.clients) == (10, None, None)
    assert topic.edges == []
    assert any("not which clients use it" in text for text in topic.notes)
    client = whole("client", "app", cells(bodies=False))
    assert {edge.kind for edge in client.edges} == {"broker"}
    assert client.groups is None
    assert any("does not count topics and groups by client" in text for text in client.notes)
    assert whole("client", "app").notes == []
    assert any("software is not known" in text for text in whole("client", "reader").notes)


def test_what_nobody_has_seen_is_not_chosen() -> None:
    assert chosen(Tables(cells()), Asked(kind="client", cluster="main", name="gone")) is None
    assert chosen(Tables(cells()), Asked(kind="client", cluster="other", name="app")) is None
    assert chosen(Tables(cells()), Asked()) is None


def test_a_client_that_has_a_connection_but_no_count_is_told_as_that() -> None:
    made = cells(bodies=False)
    made.opened.append(Opened(9, "10.0.0.9:1", "main", "the-201st", "1"))
    assert "the-201st" in names(Asked(), made)
    found = whole("client", "the-201st", made)
    assert (found.row.requests, found.row.connections) == (None, 1)
    assert any("metrics: clients" in text for text in found.notes)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("client", 'a "b" \\ c', 'client_id == "a \\"b\\" \\\\ c"'),
        ("client", "", '(client_id is None or client_id == "")'),
        ("client", "other", ""),
        ("broker", "controller 1", 'broker == "controller 1"'),
        ("topic", "é\n", 'topic == "é\\n"'),
        ("topic", "id:AAAAAAAAAAAAAAAAAAAAAA", ""),
    ],
)
def test_expressions_choose_the_exchanges_of_a_node_whatever_its_name(
    kind: Any, name: str, expected: str
) -> None:
    made = Cells(Counting(quantile, True))
    client, broker = (name if kind == of else "x" for of in ("client", "broker"))
    made.call(Call("main", client, broker, "Fetch", 15)).add(
        Amounts(1, 1, 1, 1, {("ERROR_999", "broker"): 1})
    )
    made.topic(About("main", client, name if kind == "topic" else "x", "Fetch")).requests = 1
    found = whole(kind, name, made)
    assert found.row.where == expected
    for where in (edge.where for edge in found.edges):
        assert bool(where) == bool(expected)
    texts = [found.row.where, *(one.where for one in found.edges), *(one.where for one in found.apis)]
    texts += [*(one.where for one in found.errors), *(one.where for one in found.links)]
    for text in filter(None, texts):
        parse(f"{text} and {FAILED}").apis()


def test_the_condition_of_the_page_is_part_of_all_expressions() -> None:
    found = whole("client", "app", where="api == Produce or error != NONE")
    assert found.row.where == '(api == Produce or error != NONE) and client_id == "app"'
    assert all(edge.where.startswith("(api == Produce or error != NONE) and ") for edge in found.edges)


def test_of_several_clusters_nodes_are_told_with_their_own() -> None:
    made = cells()
    made.call(Call("second", "app", "1", "Produce", 9)).requests = 1
    assert names(Asked(), made) == ["app", "reader", "app"]
    assert whole("client", "app", made).row.where == 'cluster == "main" and client_id == "app"'
    assert whole("client", "app", made).row.requests == 10


def test_beyond_the_bound_clients_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.dashboards.web.traffic.cells.MOST_CELLS", 3)
    monkeypatch.setattr("klamm.dashboards.web.traffic.cells.SPARE", 1)
    made = Cells(Counting(quantile, True))
    for number in range(10):
        made.call(Call("main", f"client-{number}", "1", "Fetch", 1)).requests += 1
    made.call(Call("main", "late", "2", "Fetch", 99)).requests += 1
    assert Call("main", "other", "other", "other", -1) in made.calls
    assert len(made.calls) == 5
    rest = {row.name: row for row in Tables(made).shown(Asked())[0]}["other"]
    assert rest.requests == 8
    assert sum(each.requests for each in made.calls.values()) == 11
    assert bounded("x" * 250) == "other"
