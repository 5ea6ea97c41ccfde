"""The differences between two configurations, and which of them a running klamm takes."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from klamm.proxy.config import (
    Admin,
    Capture,
    Cluster,
    Config,
    Limits,
    ListenSasl,
    ListenTls,
    Metrics,
    State,
    Tls,
    Traces,
)
from klamm.proxy.config_types import (
    Address,
    Bytes,
    ClusterName,
    Folder,
    InputFile,
    Listen,
    OutputFile,
    Seconds,
)
from klamm.proxy.control.changes import IN_PLACE, IN_PLACE_IF_BOTH, at_start, changed, in_place

ORDERS = Cluster((Address("kafka-1", 9092),), ClusterName("orders"))
BILLING = Cluster((Address("kafka-2", 9092),), ClusterName("billing"))
BEFORE = Config((ORDERS,))


@pytest.mark.parametrize(
    ("after", "paths"),
    [
        (BEFORE, []),
        (
            replace(BEFORE, limits=Limits(drain_s=Seconds(3), held_bytes=Bytes(7))),
            ["limits.held_bytes", "limits.drain_s"],
        ),
        (replace(BEFORE, clusters=(ORDERS, BILLING)), ["clusters[billing]"]),
        (replace(BEFORE, clusters=(BILLING,)), ["clusters[orders]", "clusters[billing]"]),
        (replace(BEFORE, clusters=(replace(ORDERS, tls=Tls()),)), ["clusters[orders].tls"]),
        (replace(BEFORE, capture=Capture(Folder("there"))), ["capture"]),
    ],
)
def test_keys_that_differ_are_named(after: Config, paths: list[str]) -> None:
    assert changed(BEFORE, after) == paths


def test_a_key_inside_of_a_cluster_is_named_with_it() -> None:
    one, other = (replace(ORDERS, tls=Tls(ca=InputFile(ca))) for ca in ("a.pem", "b.pem"))
    assert changed(Config((one,)), Config((other,))) == ["clusters[orders].tls.ca"]


def test_the_order_of_clusters_is_no_difference() -> None:
    assert changed(Config((ORDERS, BILLING)), Config((BILLING, ORDERS))) == []


def test_some_keys_wait_for_the_next_start() -> None:
    after = replace(
        BEFORE,
        admin=Admin(read_only=True),
        traces=Traces(),
        state=State(None),
        handover=OutputFile("there"),
        metrics=Metrics(listen=Address("0.0.0.0", 9090), expire_s=Seconds(5)),
    )
    assert at_start(changed(BEFORE, after)) == [
        "admin.read_only",
        "metrics.listen",
        "state.folder",
        "traces",
        "handover",
    ]


def test_listeners_of_a_cluster_are_opened_anew_for_other_addresses_and_for_tls_that_begins_or_ends() -> None:
    tls = ListenTls(InputFile("klamm.pem"))
    assert not in_place(ORDERS, replace(ORDERS, listen=Listen(first=20000)))
    assert not in_place(ORDERS, replace(ORDERS, ports={1: 20001}))  # type: ignore[dict-item]
    assert not in_place(ORDERS, replace(ORDERS, listen_tls=tls))
    assert not in_place(ORDERS, replace(ORDERS, listen_sasl=ListenSasl(("PLAIN",))))
    assert not in_place(replace(ORDERS, tls=Tls()), ORDERS)
    assert in_place(
        replace(ORDERS, listen_tls=tls), replace(ORDERS, listen_tls=replace(tls, ca=InputFile("ca.pem")))
    )
    assert in_place(ORDERS, replace(ORDERS, bootstrap=BILLING.bootstrap, connect_timeout_s=Seconds(1)))


def test_every_key_of_a_cluster_is_known_to_be_taken_in_place_or_not() -> None:
    replaced = {"name", "listen", "ports", "proxy_protocol", "transparent"}
    assert {each.name for each in fields(Cluster)} == IN_PLACE | IN_PLACE_IF_BOTH | replaced
