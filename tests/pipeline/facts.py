"""The brokers' own facts about the work: asked directly, and read in their logs."""

import re
from collections import defaultdict
from typing import NamedTuple

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from tests.brokers.kraft import Cluster

GENERATIONS = re.compile(r"Stabilized group (\S+) generation (\d+) with")
MEMBERS = re.compile(r"\[GroupId (\S+)\] Member (\S+) joins the consumer group using the consumer protocol")
EPOCHS = re.compile(r"\[GroupId (\S+)\] Computed a new target assignment for epoch (\d+)")


class Facts(NamedTuple):
    """Partitions are `topic-0`."""

    end_offsets: dict[str, int]
    log_bytes: dict[str, int]  # the size of the partition's log
    committed: dict[str, dict[str, int]]  # by group and partition
    generations: dict[str, set[str]]  # by classic group: those that members had
    members: dict[str, set[str]]  # by group of KIP-848: the ids of those that joined
    epochs: dict[str, set[str]]  # by group of KIP-848: those with an assignment


def facts(cluster: Cluster, prefix: str) -> Facts:
    """Of topics and groups whose names begin with `prefix`."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
    logged = [_logged(cluster, wanted, prefix) for wanted in (GENERATIONS, MEMBERS, EPOCHS)]
    return Facts(
        _end_offsets(cluster, admin, prefix),
        _log_bytes(cluster, prefix),
        _committed(admin, prefix),
        *logged,
    )


def _end_offsets(cluster: Cluster, admin: AdminClient, prefix: str) -> dict[str, int]:
    reader = Consumer({"bootstrap.servers": cluster.bootstrap(), "group.id": "facts"})
    ends = {}
    for name, topic in admin.list_topics(timeout=30).topics.items():
        for number in topic.partitions if name.startswith(prefix) else ():
            ends[f"{name}-{number}"] = reader.get_watermark_offsets(TopicPartition(name, number), timeout=30)[
                1
            ]
    reader.close()
    return ends


def _log_bytes(cluster: Cluster, prefix: str) -> dict[str, int]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap())
    answers = admin.describe_log_dirs()
    admin.close()
    sizes: dict[str, int] = {}
    for topic in (topic for answer in answers for folder in answer["log_dirs"] for topic in folder["topics"]):
        for each in topic["partitions"] if topic["name"].startswith(prefix) else ():
            name = f"{topic['name']}-{each['partition_index']}"
            sizes[name] = max(sizes.get(name, 0), each["partition_size"])
    return sizes


def _committed(admin: AdminClient, prefix: str) -> dict[str, dict[str, int]]:
    committed = {}
    groups = [listed.group_id for listed in admin.list_consumer_groups().result(30).valid]
    for group in (group for group in groups if group.startswith(prefix)):
        answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(30)
        committed[group] = {f"{each.topic}-{each.partition}": each.offset for each in answer.topic_partitions}
    return committed


def _logged(cluster: Cluster, wanted: re.Pattern[str], prefix: str) -> dict[str, set[str]]:
    """The facts in the coordinators' logs, by group."""
    found = defaultdict(set)
    for broker in cluster.brokers.values():
        for group, what in wanted.findall(broker.process.log.read_text()):
            if group.startswith(prefix):
                found[group].add(what)
    return dict(found)
