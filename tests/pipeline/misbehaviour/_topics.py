"""Topics of a misbehaving client, made under its own name."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 30.0


def create(
    bootstrap: str,
    client_id: str,
    *topics: str,
    partitions: int = 3,
    replicas: int = 3,
    config: dict[str, str] | None = None,
    credentials: Mapping[str, str] = {},
) -> None:
    """Return when every partition has a leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": client_id, **credentials})
    made = admin.create_topics(
        [NewTopic(topic, partitions, replicas, config=config or {}) for topic in topics]
    )
    for topic in topics:
        made[topic].result(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while not _led(admin, topics, partitions):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no leaders of {', '.join(topics)}")
        time.sleep(0.25)


def _led(admin: AdminClient, topics: Sequence[str], partitions: int) -> bool:
    """By one request, however many topics there are: a client that asks for each is a metadata storm."""
    found = admin.list_topics(timeout=PATIENCE_S).topics
    leaders = [[one.leader for one in found[topic].partitions.values()] for topic in topics if topic in found]
    return len(leaders) == len(topics) and all(len(of) == partitions and min(of) >= 0 for of in leaders)
