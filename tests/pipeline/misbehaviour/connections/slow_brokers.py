"""A broker that stands still for a moment again and again, as with a bad disk or a busy garbage collector.
The client is well: it writes, and watches how far the partitions have come.
"""

import signal
import time
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.brokers.kraft import Cluster
from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order
from tests.pipeline.misbehaviour._stock import until

CLIENT_ID = "slow-brokers"
EXPECTED = {"few_replicas"}  # its topic is on one broker
SUBJECTS = ("broker 3",)
BROKER = 3
STILL_S = RUNNING_S = 0.5
PARTITIONS = 6
PAUSE_S = 0.05
RECORDS = 50  # of a piece of work


def environment(cluster: Cluster, seconds: float) -> None:
    """Let the broker stand still, and run again, also when it was started anew meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(RUNNING_S)
        process = cluster.brokers[BROKER].process.child
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(STILL_S)
        finally:
            process.send_signal(signal.SIGCONT)


def run(bootstrap: str, seconds: float) -> None:
    """One replica: with three, each broker waits for the slow one before it answers a Produce."""
    alone = {"min.insync.replicas": "1"}
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=PARTITIONS, replicas=1, config=alone)
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    watcher = Consumer({"bootstrap.servers": bootstrap, "client.id": CLIENT_ID, "group.id": CLIENT_ID})
    end, index = until(seconds), 0
    while time.monotonic() < end:
        partition = index % PARTITIONS
        for number in range(RECORDS):
            producer.produce(CLIENT_ID, order(index * RECORDS + number), partition=partition)
        producer.poll(0)
        with suppress(KafkaException):  # a broker may not have heard of the topic yet
            watcher.get_watermark_offsets(TopicPartition(CLIENT_ID, partition), timeout=10)
        index += 1
        time.sleep(PAUSE_S)  # nothing is made up for: what came late in one go would hide what waited
    producer.flush(30)
    watcher.close()
