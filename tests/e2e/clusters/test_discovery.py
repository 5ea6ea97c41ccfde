"""klamm asks real brokers for their cluster: brokers and controllers, combined and separate."""

import asyncio
from collections.abc import Iterator

import pytest

from klamm.proxy.cluster.conversation import Way
from klamm.proxy.cluster.own_requests.discovery import Found, discover
from klamm.proxy.config_types import Address
from klamm.proxy.session.rewriting.topology import NodeKey
from tests.brokers.kraft import Cluster, kraft_cluster

pytestmark = pytest.mark.brokers

CONTROLLER = 3000
ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker, and a controller that is no broker."""
    folder = tmp_path_factory.mktemp("apart")
    with kraft_cluster(folder, (CONTROLLER, 1), settings=ALONE, separate=True) as cluster:
        yield cluster


def _found(address: tuple[str, int]) -> Found:
    return asyncio.run(discover(Address(*address), Way(10.0)))


def test_a_combined_node_is_found_as_broker_and_as_controller(kafka: Cluster) -> None:
    for broker in (1, 2, 3):
        found = _found(kafka.address(broker))
        assert found.cluster_id == kafka.cluster_id
        assert found.nodes == {
            NodeKey("broker", 1): ("127.0.0.1", kafka.brokers[1].ports["PLAINTEXT"]),
            NodeKey("broker", 2): ("localhost", kafka.brokers[2].ports["PLAINTEXT"]),
            NodeKey("broker", 3): ("127.0.0.1", kafka.brokers[3].ports["PLAINTEXT"]),
            NodeKey("controller", 1): ("127.0.0.1", kafka.controller_port),
        }


def test_a_separate_controller_is_found_through_a_broker_and_by_itself(apart: Cluster) -> None:
    controller = {NodeKey("controller", CONTROLLER): ("127.0.0.1", apart.controller_port)}
    through_broker = _found(apart.address(1))
    assert through_broker.cluster_id == apart.cluster_id
    assert through_broker.nodes == {NodeKey("broker", 1): apart.address(1), **controller}
    by_itself = _found(("127.0.0.1", apart.controller_port))
    assert (by_itself.cluster_id, by_itself.nodes) == (apart.cluster_id, controller)
