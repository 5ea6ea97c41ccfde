"""`clusters[].names` in klamm.yaml: what is read, and what is said of every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from klamm.cli.running.config_file import load
from klamm.proxy.config import Config, Names
from klamm.proxy.config_types import NodePattern, ServerName
from klamm.settings.mistakes import ConfigError
from tests.fakes import tls

NODES = "broker-$(node).{}.example"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tls.of_days(tmp_path, (-1, 40))
    return tmp_path


def cluster(name: str = "orders", names: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    given = {"bootstrap": f"bootstrap.{name}.example", "nodes": NODES.format(name)}
    return {
        "name": name,
        "bootstrap": "kafka:9092",
        "listen": "0.0.0.0:9093",
        "listen_tls": {"cert": "broker.pem"},
        "names": {**given, **(names or {})},
        **more,
    }


def config_of(folder: Path, *clusters: dict[str, Any]) -> Config:
    (folder / "klamm.yaml").write_text(yaml.safe_dump({"clusters": list(clusters)}))
    return load(str(folder / "klamm.yaml"))


def mistakes_of(folder: Path, *clusters: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config_of(folder, *clusters)
    return [mistake.path_and_reason for mistake in map(Said, str(caught.value).split("\n"))]


class Said:
    """A mistake without its place in the file."""

    def __init__(self, line: str) -> None:
        self.path_and_reason = line.partition(".yaml:")[2].partition(": ")[2]


def test_clusters_may_share_a_port_by_names(folder: Path) -> None:
    found = config_of(folder, cluster(), cluster("billing", {"port": 443}))
    orders, billing = found.clusters
    assert orders.names == Names(
        ServerName("bootstrap.orders.example"), NodePattern("broker-$(node).orders.example")
    )
    assert billing.names is not None
    assert billing.names.port == 443
    assert orders.listen == billing.listen


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ({"nodes": "broker.example"}, "names.nodes: 'broker.example' has to have $(node) in it, once"),
        ({"nodes": "b-$(node)-$(node).x"}, "has to have $(node) in it, once: write it as broker-$(node)"),
        ({"nodes": "b-$(nodeId).x"}, "has to have $(node) in it, once"),
        ({"nodes": "b1$(node).x"}, "has a digit beside $(node), where ids end"),
        ({"nodes": "$(node)1.x"}, "has a digit beside $(node), where ids end"),
        ({"nodes": "a b-$(node).x"}, "gives no names for nodes: 'a b-2147483647.x' is not a host name"),
        ({"nodes": "b-$(node).x."}, "clients send server names without a dot at the end"),
        ({"nodes": "x" * 43 + "$(node).x"}, "is not a host name"),
        ({"bootstrap": "10.0.0.1"}, "names.bootstrap: clients send no server name for an IP address"),
        ({"bootstrap": "fd00::1"}, "names.bootstrap: clients send no server name for an IP address"),
        ({"bootstrap": "klamm"}, "Java sends no server name for a host without a dot"),
        ({"bootstrap": "kafka_1.x"}, "Java sends no server name for a host with '_' in it"),
        ({"nodes": "broker_$(node).x"}, "Java sends no server name for a host with '_' in it"),
        ({"bootstrap": "k.x."}, "without a dot at the end: write k.x"),
        (
            {"bootstrap": "broker-7.orders.example"},
            "is the name of a node too (broker-$(node).orders.example)",
        ),
        ({"port": 0}, "names.port: port 0 is outside 1-65535"),
    ],
)
def test_a_name_that_no_client_could_send_is_a_mistake(
    folder: Path, names: dict[str, Any], says: str
) -> None:
    [mistake] = mistakes_of(folder, cluster(names=names))
    assert says in mistake


def test_settings_that_contradict_names_are_mistakes(folder: Path) -> None:
    contrary: dict[str, Any] = {
        "advertise": "klamm",
        "ports": {1: 9095},
        "transparent": True,
        "listen": "0.0.0.0:9093-9099",
    }
    found = mistakes_of(folder, cluster(**contrary))
    assert found == [
        "clusters[0].advertise: means nothing with names, which clients are told: take it out",
        "clusters[0].listen: with names all nodes share one port: write 0.0.0.0:9093",
        "clusters[0].ports: means nothing with names: all nodes share one port; take it out",
        "clusters[0].transparent: clients keep the brokers' addresses, so that none asks for a name: take it "
        "out, or names",
    ]


def test_names_need_tls(folder: Path) -> None:
    plain = cluster()
    del plain["listen_tls"]
    [mistake] = mistakes_of(folder, plain)
    advice = "add listen_tls, with a certificate for these names"
    assert mistake == f"clusters[0].names: clients tell names in TLS only: {advice}"


@pytest.mark.parametrize(
    ("names", "common"),
    [
        ({"bootstrap": "bootstrap.orders.example"}, "bootstrap.orders.example"),
        ({"bootstrap": "broker-4.orders.example"}, "broker-4.orders.example"),
        ({"nodes": "broker-$(node).orders.example"}, "broker-0.orders.example"),
        ({"nodes": "BROKER-$(node).orders.example"}, "broker-0.orders.example"),
        ({"nodes": "broker-controller-$(node).orders.example"}, "broker-controller-0.orders.example"),
    ],
)
def test_a_name_of_two_clusters_at_one_port_is_a_mistake_that_names_both(
    folder: Path, names: dict[str, Any], common: str
) -> None:
    both = cluster(), cluster("billing", names)
    [mistake] = mistakes_of(folder, *both)
    where = "cluster orders, which shares 0.0.0.0:9093 with it"
    assert mistake == f"clusters[1].names: {common} is a name of {where}"
    elsewhere = {**both[1], "listen": "0.0.0.0:9094"}
    assert len(config_of(folder, both[0], elsewhere).clusters) == 2


def test_the_header_of_a_balancer_is_that_of_the_whole_port(folder: Path) -> None:
    balancers = {"from": ["10.0.0.0/8"]}
    [mistake] = mistakes_of(folder, cluster(), cluster("billing", proxy_protocol=balancers))
    assert mistake.startswith("clusters[1].proxy_protocol: is not that of cluster orders, which shares")
    both = cluster(proxy_protocol=balancers), cluster("billing", proxy_protocol=balancers)
    assert len(config_of(folder, *both).clusters) == 2


def test_a_port_is_shared_by_names_only(folder: Path) -> None:
    bare = {"name": "billing", "bootstrap": "kafka:9092", "listen": "0.0.0.0:9000-9099"}
    [mistake] = mistakes_of(folder, cluster(), bare)
    assert "ports 9000-9099 meet those of cluster orders (9093)" in mistake
    [mistake] = mistakes_of(folder, cluster(), cluster("billing", listen="127.0.0.1:9093"))
    assert mistake == "clusters[1].listen: port 9093 is taken by cluster orders (9093): choose another"
    beside = {**bare, "listen": "0.0.0.0:9094-9099"}
    assert len(config_of(folder, cluster(), beside).clusters) == 2
