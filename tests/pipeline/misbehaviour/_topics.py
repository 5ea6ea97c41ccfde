"""Topics of a misbehaving client, made under its own name."""

import time

from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 30.0


def create(
    bootstrap: str, client_id: str, *topics: str, partitions: int = 3, replicas: int = 3, **config: str
) -> None:
    """Return when every partition has a leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": client_id})
    made = admin.create_topics([NewTopic(topic, partitions, replicas, config=config) for topic in topics])
    for topic in topics:
        made[topic].result(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while not all(_led(admin, topic, partitions) for topic in topics):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no leaders of {', '.join(topics)}")
        time.sleep(0.25)


def _led(admin: AdminClient, topic: str, partitions: int) -> bool:
    found = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
    return len(found) == partitions and all(one.leader >= 0 for one in found.values())
