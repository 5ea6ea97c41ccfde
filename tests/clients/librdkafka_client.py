"""librdkafka (confluent-kafka) as a client program; actions.py says how it is called."""

import time
from pathlib import Path
from typing import Any

from actions import Action, enough, pace, run, settle_s
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
)
from records import digest, fingerprint, record


def _settings(bootstrap: str, action: Action) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "client.id": "librdkafka-test"}
    if action["security"] != "PLAINTEXT":
        settings["security.protocol"] = action["security"]
    if action["ca"]:
        settings["ssl.ca.location"] = action["ca"]
    if action["cert"]:
        settings |= {"ssl.certificate.location": action["cert"], "ssl.key.location": action["cert"]}
    if action["token"]:
        token = Path(action["token"]).read_text()
        settings |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (token, time.time() + 600)}
    elif action["mechanism"]:
        settings |= {
            "sasl.mechanism": action["mechanism"],
            "sasl.username": action["username"],
            "sasl.password": action["password"],
        }
    return settings


def produce(bootstrap: str, action: Action) -> dict[str, Any]:
    """Send the records of a seed; in a transaction where there is a transactional id."""
    settings = _settings(bootstrap, action) | {
        "acks": action["acks"],
        "enable.idempotence": action["idempotent"] or bool(action["transactional_id"]),
        "compression.type": action["compression"],
        "message.max.bytes": 50 << 20,
        "delivery.timeout.ms": int(action["timeout_s"] * 1000),
    }
    if action["in_flight"]:
        settings["max.in.flight.requests.per.connection"] = action["in_flight"]
    if action["transactional_id"]:
        settings |= {
            "transactional.id": action["transactional_id"],
            "transaction.timeout.ms": int(action["timeout_s"] * 1000),
        }
    producer = Producer(settings)
    failed: list[int] = []
    delivered: list[int] = []

    def send(seed: str, count: int) -> None:
        failed.clear()
        delivered.clear()
        started = time.monotonic()
        for index in range(count):
            while (seconds := pace(action, index, started)) > 0:
                producer.poll(seconds)  # until something has happened
            producer.poll(0)
            key, value, headers = record(seed, index, action["size"], action["headers"])

            def report(error: KafkaError | None, _: Message, index: int = index) -> None:
                (failed if error else delivered).append(index)

            while True:
                try:
                    producer.produce(
                        action["topic"], key=key, value=value, headers=headers, on_delivery=report
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush(action["timeout_s"])

    if action["transactional_id"]:
        producer.init_transactions(action["timeout_s"])
        if action["aborted"]:
            producer.begin_transaction()
            send("aborted", action["aborted"])
            producer.abort_transaction()
        producer.begin_transaction()
    send(action["seed"], action["count"])
    if action["transactional_id"]:
        producer.commit_transaction()
    time.sleep(settle_s(action))
    return {"acknowledged": len(delivered), "failed": sorted(set(range(action["count"])) - set(delivered))}


def _result(action: Action, fingerprints: list[str]) -> dict[str, Any]:
    result = {"count": len(fingerprints), "digest": digest(fingerprints)}
    return result | ({"fingerprints": fingerprints} if action["list"] else {})


def _fingerprint(message: Message) -> str:
    if error := message.error():
        raise KafkaException(error)
    return fingerprint(message.topic(), message.key(), message.value(), message.headers() or [])


def consume(bootstrap: str, action: Action) -> dict[str, Any]:
    """Read `count` records in a group of either protocol, and commit."""
    settings = _settings(bootstrap, action) | {
        "group.id": action["group"],
        "group.protocol": action["protocol"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": action["isolation"],
    }
    consumer = Consumer(settings)
    consumer.subscribe([action["topic"]])
    fingerprints: list[str] = []
    deadline = time.monotonic() + action["timeout_s"]
    while not enough(action, fingerprints) and time.monotonic() < deadline:
        fingerprints += [_fingerprint(message) for message in consumer.consume(500, 0.2)]
    if fingerprints:
        consumer.commit(asynchronous=False)
    consumer.close()
    return _result(action, fingerprints)


def share(bootstrap: str, action: Action) -> dict[str, Any]:
    """Read `count` records in a share group."""
    _read_share_group_from_the_start(bootstrap, action)
    consumer = ShareConsumer(_settings(bootstrap, action) | {"group.id": action["group"]})
    consumer.subscribe([action["topic"]])
    fingerprints: list[str] = []
    deadline = time.monotonic() + action["timeout_s"]
    while not enough(action, fingerprints) and time.monotonic() < deadline:
        fingerprints += [_fingerprint(message) for message in consumer.poll(0.5)]
    consumer.close()
    return _result(action, fingerprints)


def _read_share_group_from_the_start(bootstrap: str, action: Action) -> None:
    admin = AdminClient(_settings(bootstrap, action))
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.GROUP, action["group"], incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(timeout=action["timeout_s"])


def _described(admin: AdminClient, topic: str, timeout_s: float) -> Any:
    """A broker may be asked that has not yet heard of a new topic."""
    while True:
        try:
            return admin.describe_topics(TopicCollection([topic]))[topic].result(timeout_s)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


def _listed(admin: AdminClient, topic: str, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while topic not in admin.list_topics(timeout=timeout_s).topics:
        if time.monotonic() > deadline:
            return False
    return True


def administrate(bootstrap: str, action: Action) -> dict[str, Any]:
    """Create a topic, look at everything, delete it."""
    admin = AdminClient(_settings(bootstrap, action))
    topic, timeout = action["topic"], action["timeout_s"]
    new = NewTopic(topic, action["partitions"], action["replication_factor"])
    admin.create_topics([new], operation_timeout=timeout)[topic].result(timeout)
    described = _described(admin, topic, timeout)
    cluster = admin.describe_cluster().result(timeout)
    configs = next(iter(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()))
    ends = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()})
    groups = admin.list_consumer_groups().result(timeout)
    result = {
        "partitions": len(described.partitions),
        "brokers": [f"{node.host}:{node.port}" for node in cluster.nodes],
        "topics": _listed(admin, topic, timeout),
        "configs": len(configs.result(timeout)),
        "offsets": [future.result(timeout).offset for future in ends.values()],
        "groups": sorted(group.group_id for group in groups.valid),
    }
    admin.delete_topics([topic], operation_timeout=timeout)[topic].result(timeout)
    return result


if __name__ == "__main__":
    run({"produce": produce, "consume": consume, "share": share, "administrate": administrate})
