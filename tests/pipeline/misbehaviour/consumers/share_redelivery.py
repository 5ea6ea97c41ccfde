"""A member of a share group releases each record that it cannot process, and gets it again at once."""

import time
from typing import Any

from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import fill, until

CLIENT_ID = "share-redelivery"
EXPECTED = {"share_redelivery"}
RECORDS = 400
FAILS = 4  # every fourth record
PATIENCE_S = 30


def run(bootstrap: str, seconds: float) -> None:
    _work(bootstrap, seconds, AcknowledgeType.RELEASE)


def cured(bootstrap: str, seconds: float) -> None:
    """It rejects them."""
    _work(bootstrap, seconds, AcknowledgeType.REJECT)


def _work(bootstrap: str, seconds: float, failed: AcknowledgeType) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=RECORDS)
    shared: dict[str, Any] = {"bootstrap.servers": bootstrap, "client.id": CLIENT_ID}
    _read_from_the_start(AdminClient(shared))
    own = {"group.id": CLIENT_ID, "share.acknowledgement.mode": "explicit"}
    consumer, end = ShareConsumer(shared | own), until(seconds)
    consumer.subscribe([CLIENT_ID])
    while time.monotonic() < end:
        for message in consumer.poll(0.5):
            is_bad = (message.offset() or 0) % FAILS == 0
            consumer.acknowledge(message, failed if is_bad else AcknowledgeType.ACCEPT)
    consumer.close()


def _read_from_the_start(admin: AdminClient) -> None:
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ConfigResource.Type.GROUP, CLIENT_ID, incremental_configs=[entry])
    for done in admin.incremental_alter_configs([group]).values():
        done.result(PATIENCE_S)
