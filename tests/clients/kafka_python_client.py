"""kafka-python 3 as a client program; actions.py says how it is called."""

import time
from pathlib import Path
from typing import Any

from actions import Action, enough, pace, run, settle_s
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import RebalanceInProgressError
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.structs import OffsetAndMetadata
from recent_log import RecentLog
from records import digest, fingerprint, record

LOG = RecentLog("kafka")
LATE_S = 5.0  # after the time that an action has: it hangs
STUCK_S = 5.0  # no rebalance of a test takes longer


class Token(AbstractTokenProvider):
    """Of a file."""

    def __init__(self, file: str) -> None:
        self.file = file

    def token(self) -> str:
        return Path(self.file).read_text()


def _settings(bootstrap: str, action: Action) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap.split(","), "client_id": "kafka-python-test"}
    settings["bootstrap_timeout_ms"] = int(action["timeout_s"] * 1000)
    if action["api_version"]:
        settings["api_version"] = tuple(map(int, action["api_version"].split(".")))
    if action["security"] != "PLAINTEXT":
        settings |= {"security_protocol": action["security"], "ssl_cafile": action["ca"]}
    if action["cert"]:
        settings |= {"ssl_certfile": action["cert"], "ssl_keyfile": action["cert"]}
    if action["token"]:
        settings |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Token(action["token"])}
    elif action["mechanism"]:
        settings |= {
            "sasl_mechanism": action["mechanism"],
            "sasl_plain_username": action["username"],
            "sasl_plain_password": action["password"],
        }
    return settings


def produce(bootstrap: str, action: Action) -> dict[str, Any]:
    """Send the records of a seed; in a transaction where there is a transactional id."""
    settings = _settings(bootstrap, action) | {
        "acks": action["acks"] if action["acks"] == "all" else int(action["acks"]),
        "enable_idempotence": action["idempotent"] or bool(action["transactional_id"]),
        "transactional_id": action["transactional_id"],
        "compression_type": None if action["compression"] == "none" else action["compression"],
        "max_request_size": 50 << 20,
        "request_timeout_ms": int(min(30, action["timeout_s"] / 2) * 1000),
        "delivery_timeout_ms": int(action["timeout_s"] * 1000),
        "max_block_ms": int(action["timeout_s"] * 1000),
    }
    producer = KafkaProducer(**settings)

    def send(seed: str, count: int) -> list[Any]:
        futures, started = [], time.monotonic()
        for index in range(count):
            time.sleep(pace(action, index, started))
            key, value, headers = record(seed, index, action["size"], action["headers"])
            futures.append(producer.send(action["topic"], value=value, key=key, headers=headers))
        producer.flush(action["timeout_s"])
        return futures

    if action["transactional_id"]:
        producer.init_transactions()
        if action["aborted"]:
            producer.begin_transaction()
            send("aborted", action["aborted"])
            producer.abort_transaction()
        producer.begin_transaction()
    futures = send(action["seed"], action["count"])
    if action["transactional_id"]:
        producer.commit_transaction()
    time.sleep(settle_s(action))
    failed = [index for index, future in enumerate(futures) if not future.succeeded()]
    producer.close(timeout=10)
    return {"acknowledged": action["count"] - len(failed), "failed": failed}


def consume(bootstrap: str, action: Action) -> dict[str, Any]:
    """Read `count` records in a classic group, and commit."""
    with LOG.told_of_failure(action["timeout_s"] + LATE_S):
        return _consume(bootstrap, action)


def _consume(bootstrap: str, action: Action) -> dict[str, Any]:
    consumer = KafkaConsumer(
        **_settings(bootstrap, action),
        group_id=action["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level=action["isolation"],
        max_partition_fetch_bytes=32 << 20,
    )
    # A leader that does not know the topic yet assigns nothing, and waits for ever after its second join.
    consumer.partitions_for_topic(action["topic"])
    consumer.subscribe([action["topic"]])
    fingerprints: list[str] = []
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    deadline = time.monotonic() + action["timeout_s"]
    while not enough(action, fingerprints) and time.monotonic() < deadline:
        for partition, batch in consumer.poll(timeout_ms=500).items():
            fingerprints += [fingerprint(item.topic, item.key, item.value, item.headers) for item in batch]
            offsets[partition] = OffsetAndMetadata(batch[-1].offset + 1, "", -1)
    if not enough(action, fingerprints):
        LOG.tell()
    _commit(consumer, action["topic"], offsets, deadline)
    consumer.close()
    result = {"count": len(fingerprints), "digest": digest(fingerprints)}
    return result | ({"fingerprints": fingerprints} if action["list"] else {})


def _commit(
    consumer: KafkaConsumer, topic: str, offsets: dict[TopicPartition, OffsetAndMetadata], deadline: float
) -> None:
    """Of records that were read; after the rebalance, where one is under way."""
    stuck = time.monotonic() + STUCK_S
    while True:
        try:
            consumer.commit(offsets)
        except RebalanceInProgressError:
            if time.monotonic() > deadline:
                raise
            if time.monotonic() > stuck:  # it neither is a member nor finds that it has to join
                consumer.unsubscribe()
                consumer.subscribe([topic])
                stuck = time.monotonic() + STUCK_S
            consumer.poll(timeout_ms=500)  # takes part in it; what it reads was read before
        else:
            return


def administrate(bootstrap: str, action: Action) -> dict[str, Any]:
    """Create a topic, look at everything, delete it."""
    admin = KafkaAdminClient(**_settings(bootstrap, action))
    topic = action["topic"]
    shape = {"num_partitions": action["partitions"], "replication_factor": action["replication_factor"]}
    admin.create_topics({topic: shape})
    admin.wait_for_topics([topic])
    described = admin.describe_topics([topic])[0]
    cluster = admin.describe_cluster()
    result = {
        "partitions": len(described["partitions"]),
        "brokers": [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]],
        "topics": topic in admin.list_topics(),
    }
    admin.delete_topics([topic])
    admin.close()
    return result


def move(bootstrap: str, action: Action) -> dict[str, Any]:
    """Move `partition` to `nodes`, ids with commas between them, and let the first lead it."""
    admin = KafkaAdminClient(**_settings(bootstrap, action))
    partition = TopicPartition(action["topic"], action["partition"])
    nodes = [int(node) for node in action["nodes"].split(",")]
    answer = admin.alter_partition_reassignments({partition: nodes})
    if answer != {partition: None}:
        raise RuntimeError(f"not accepted: {answer}")
    deadline = time.monotonic() + action["timeout_s"]
    while admin.list_partition_reassignments([partition]) and time.monotonic() < deadline:
        time.sleep(0.1)
    admin.elect_leaders(0, {partition.topic: [partition.partition]}, raise_errors=False)
    admin.close()
    return {}


if __name__ == "__main__":
    run({"produce": produce, "consume": consume, "administrate": administrate, "move": move})
