"""The demo's Kafka: librdkafka's mock cluster of three brokers, in a process of its own.

Prints its bootstrap servers as one line, then serves until SIGTERM. The third broker is slow, and leaders
move: confluent-kafka binds too little of the mock cluster for that, so librdkafka, which is inside it, is
called directly (rdkafka_mock.h).
"""

from __future__ import annotations

import ctypes
import signal
import sys
from itertools import cycle

from klamm.cli.demo.traffic import PARTITIONS, TOPICS

RTT_MS = {1: 2, 2: 2, 3: 6}
LEADER_MOVES_EVERY_S = 4.0
PRODUCER = 0  # rd_kafka_type_t
METADATA = 3
METADATA_VERSION = 8  # the mock cluster's answers of later ones have a byte too many


def main() -> int:
    """Serve until SIGTERM. 1 if librdkafka is not to be had."""
    kafka = librdkafka()
    reason = ctypes.create_string_buffer(512)
    handle = kafka.rd_kafka_new(PRODUCER, None, reason, ctypes.c_size_t(len(reason)))
    if not handle:
        print(f"librdkafka does not start: {reason.value.decode()}", file=sys.stderr)
        return 1
    cluster = ctypes.c_void_p(kafka.rd_kafka_mock_cluster_new(ctypes.c_void_p(handle), len(RTT_MS)))
    for broker, rtt_ms in RTT_MS.items():
        kafka.rd_kafka_mock_broker_set_rtt(cluster, broker, rtt_ms)
    kafka.rd_kafka_mock_set_apiversion(cluster, METADATA, 0, METADATA_VERSION)
    for topic in TOPICS:
        kafka.rd_kafka_mock_topic_create(cluster, topic.encode(), PARTITIONS, 1)
    print(kafka.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)

    moves = cycle((topic, partition) for partition in range(PARTITIONS) for topic in TOPICS)
    leaders = cycle(RTT_MS)
    while signal.sigtimedwait({signal.SIGTERM}, LEADER_MOVES_EVERY_S) is None:
        topic, partition = next(moves)
        kafka.rd_kafka_mock_partition_set_leader(cluster, topic.encode(), partition, next(leaders))
    return 0


def librdkafka() -> ctypes.CDLL:
    """The library that confluent-kafka brought along, with the few signatures that are not of integers."""
    from confluent_kafka import cimpl

    library = ctypes.CDLL(cimpl.__file__)  # its symbols include those of the librdkafka it is linked with
    library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library


if __name__ == "__main__":
    signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGTERM}
    )  # before librdkafka's threads, which inherit it
    sys.exit(main())
