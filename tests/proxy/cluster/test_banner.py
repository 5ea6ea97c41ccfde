"""The lines that `klamm run` prints for clients that speak TLS to klamm."""

from __future__ import annotations

import pytest

from klamm.cli.running.banner import banner
from klamm.proxy.greeting import Greeting
from klamm.proxy.metrics.snapshot import ClusterState, NodeState


@pytest.mark.parametrize(
    ("tls", "sasl", "ends_sasl", "protocol"),
    [
        (False, False, False, None),
        (False, True, False, "SASL_PLAINTEXT"),
        (False, False, True, "SASL_PLAINTEXT"),
        (True, False, False, "SSL"),
        (True, None, False, "SSL"),
        (True, True, False, "SASL_SSL"),
        (True, False, True, "SASL_SSL"),
    ],
)
def test_the_settings_to_paste_have_the_protocol_of_klamms_listeners(
    tls: bool, sasl: bool | None, ends_sasl: bool, protocol: str | None
) -> None:
    cluster = ClusterState("kafka", ("a:1",), "klamm.example:19092", sasl=sasl, tls=tls, ends_sasl=ends_sasl)
    lines = banner(Greeting([cluster], False, None, None, "", None)).splitlines()
    given = [line.strip() for line in lines if "bootstrap.servers" in line or "security" in line]
    user = " -X sasl.mechanism=MECHANISM -X sasl.username=USER -X sasl.password=PASSWORD"
    more = "" if protocol == "SSL" else user
    if protocol is None:
        assert given == ["bootstrap.servers=klamm.example:19092"]
    else:
        assert given == [
            "bootstrap.servers=klamm.example:19092",
            f"security.protocol={protocol}",
            f"kcat -b klamm.example:19092 -X security.protocol={protocol}{more} -L",
        ]


def test_clients_that_keep_the_brokers_addresses_need_a_redirect() -> None:
    nodes = tuple(NodeState("broker", n, f"kafka-{n}:{9090 + n}", f"kafka-{n}:{9090 + n}") for n in (2, 3))
    cluster = ClusterState("kafka", ("kafka-1:9092",), "127.0.0.1:19092", nodes=nodes, transparent=True)
    assert banner(Greeting([cluster], False, None, None, "", None)).splitlines() == [
        "klamm stands in front of kafka",
        "",
        "  clients keep the brokers' addresses; a redirect leads them here, and leaves klamm's USER out:",
        "  iptables -t nat -A OUTPUT -p tcp -m multiport --dports 9092,9093 \\",
        "      -m owner ! --uid-owner USER -j REDIRECT --to-ports 19092",
        "",
        "  node       the cluster says  clients are told",
        "  bootstrap  kafka-1:9092",
        "  broker 2   kafka-2:9092      kafka-2:9092",
        "  broker 3   kafka-3:9093      kafka-3:9093",
    ]


def test_brokers_that_are_not_named_yet_follow_with_a_port_where_each_has_its_own() -> None:
    def said(one_port: bool) -> str:
        cluster = ClusterState("kafka", ("a:1",), "bootstrap.example:443", tls=True, one_port=one_port)
        return banner(Greeting([cluster], False, None, None, "", None))

    assert "  the brokers' ports follow, once" in said(one_port=False)
    assert "  the brokers follow, once" in said(one_port=True)
    assert "bootstrap.servers=bootstrap.example:443" in said(one_port=True)


def test_hosts_and_ids_of_brokers_move_no_terminals_cursor() -> None:
    hosts = "\x1b[31m<script>", "\udcff\udcfe", "a\nb", "kafka-4"
    nodes = tuple(NodeState("broker", n, f"{host}:9092", f"klamm:{n}") for n, host in enumerate(hosts, 1))
    cluster = ClusterState("kafka", ("a:1",), "127.0.0.1:19092", cluster_id="\x1b]0;id\x07", nodes=nodes)
    said = banner(Greeting([cluster], False, None, None, "", None))
    assert "(id \\x1b]0;id\\x07)" in said.splitlines()[0]
    assert said.splitlines()[-4:] == [
        "  broker 1   \\x1b[31m<script>:9092  klamm:1",
        "  broker 2   \\udcff\\udcfe:9092      klamm:2",
        "  broker 3   a\\nb:9092              klamm:3",
        "  broker 4   kafka-4:9092           klamm:4",
    ]
    assert all(line.isprintable() for line in said.splitlines())
