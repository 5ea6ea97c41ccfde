"""Fetch, ListOffsets, Produce and OffsetForLeaderEpoch, answered from the recorded logs."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import NamedTuple

from klamm.decoders.records import RecordsError, batches
from klamm.replay.serving.answers import Asked, Broker, Reply, known, waited
from klamm.replay.serving.log import Partition
from klamm.replay.serving.matching import Values
from klamm.replay.serving.parts import in_version

OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION = 1, 2, 3
FETCH_SESSION_ID_NOT_FOUND, UNKNOWN_TOPIC_ID = 70, 100
TOPIC_IDS = {"Fetch": 13, "Produce": 13}  # the version from which topics go by their ids
READ_COMMITTED = 1
NO_LIMIT = 2**31 - 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4


class Room(NamedTuple):
    """The bytes that a partition may still have in an answer."""

    answer: int
    partition: int


def fetch(broker: Broker, asked: Asked) -> Reply | Awaitable[Reply]:
    """Batches from the offsets asked for. There are no sessions; nothing new is answered when the client
    would not wait longer.
    """
    request = asked.values
    if request.get("session_epoch", -1) > 0:
        return {"error_code": FETCH_SESSION_ID_NOT_FOUND, "session_id": 0, "responses": []}
    left = request.get("max_bytes", NO_LIMIT)
    committed = request.get("isolation_level") == READ_COMMITTED
    topics, news = [], False
    for topic in request["topics"]:
        rows = []
        for one in topic["partitions"]:
            partition = known(broker.recording, topic, one["partition"], "topic")
            room = Room(left, one["partition_max_bytes"])
            row = _fetched(partition, one["fetch_offset"], asked.version, room, committed)
            if row is None:
                row = _unknown(broker, asked, topic, "topic", one["partition"])
            left -= len(row["records"])
            news = news or bool(row["records"]) or row["error_code"] != 0
            rows.append({"partition_index": one["partition"], **row})
        topics.append({**_named(topic, "topic"), "partitions": rows})
    response = {"error_code": 0, "session_id": 0, "responses": topics}
    return response if news else waited(request["max_wait_ms"], response)


def _fetched(
    partition: Partition | None, offset: int, version: int, room: Room, committed: bool
) -> Values | None:
    if partition is None:
        return None
    recording = {"high_watermark": partition.end, "last_stable_offset": partition.end}
    recording["log_start_offset"] = partition.told_start
    if not 0 <= offset <= max(partition.end, partition.told_end):
        return {**recording, "error_code": OFFSET_OUT_OF_RANGE, "records": b"", "high_watermark": -1}
    data, after = (b"", offset) if room.answer <= 0 else partition.read(offset, min(room), version)
    aborted = None
    if committed:
        between = partition.aborted_between(offset, after)
        aborted = [{"producer_id": one.producer_id, "first_offset": one.first} for one in between]
    return {**recording, "error_code": 0, "records": data, "aborted_transactions": aborted}


def _unknown(broker: Broker, asked: Asked, topic: Values, name: str, index: int) -> Values:
    label = broker.recording.topic(topic, name)
    broker.lacks(asked, f"{label}-{index}" if label in broker.recording.topics() else label)
    by_id = asked.version >= TOPIC_IDS.get(asked.api.name, NO_LIMIT) and not broker.recording.name_of(
        topic["topic_id"]
    )
    code = UNKNOWN_TOPIC_ID if by_id else UNKNOWN_TOPIC_OR_PARTITION
    return {"error_code": code, "high_watermark": -1, "records": b"", "base_offset": -1}


def _named(topic: Values, name: str = "name") -> Values:
    return {key: topic[key] for key in (name, "topic_id") if key in topic}


def list_offsets(broker: Broker, asked: Asked) -> Reply:
    """As recorded, but never behind the end of the readable log."""
    topics = []
    for topic in asked.values["topics"]:
        rows = []
        for one in topic["partitions"]:
            index = one["partition_index"]
            partition = known(broker.recording, topic, index)
            if partition is None:
                row = _unknown(broker, asked, topic, "name", index)
            else:
                recorded = broker.recording.offsets.tell(
                    (broker.recording.topic(topic), index, one["timestamp"])
                )
                row = _offset(partition, recorded and recorded.answer, one["timestamp"])
            row["old_style_offsets"] = [row["offset"]] if row.get("offset", -1) >= 0 else []
            rows.append({**row, "partition_index": index})
        topics.append({**_named(topic), "partitions": rows})
    return {"topics": topics}


def _offset(partition: Partition, recording: Values | None, timestamp: int) -> Values:
    if recording is not None:
        offset = min(recording["offset"], partition.end) if partition.stored else recording["offset"]
        epoch = recording.get("leader_epoch", -1)
        return {"error_code": 0, "timestamp": recording["timestamp"], "offset": offset, "leader_epoch": epoch}
    found: tuple[int, int] | None = None
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        found = -1, partition.start
    elif timestamp == LATEST:
        found = -1, partition.end
    elif timestamp == MAX_TIMESTAMP:
        found = partition.at_time(max((s.batch.max_timestamp for s in partition.stored), default=0))
    elif timestamp >= 0:
        found = partition.at_time(timestamp)
    at, offset = found or (-1, -1)
    return {"error_code": 0, "timestamp": at, "offset": offset}


def produce(broker: Broker, asked: Asked) -> Reply:
    """Taken, at the offsets that were recorded and after them; what is read stays what was recorded."""
    topics = []
    for topic in asked.values["topic_data"]:
        rows = []
        for one in topic["partition_data"]:
            place = broker.recording.topic(topic), one["index"]
            if known(broker.recording, topic, one["index"]) is None:
                row = _unknown(broker, asked, topic, "name", one["index"])
            else:
                recorded = broker.recording.produced.tell(place, again=False)
                taken = {"error_code": 0, "base_offset": broker.produced[place]}
                row = dict(recorded.answer if recorded else taken)
            try:
                sent = sum(max(1, batch.record_count) for batch in batches(one["records"] or b""))
            except RecordsError:
                row, sent = {"error_code": CORRUPT_MESSAGE, "base_offset": -1}, 0
            if not row["error_code"]:
                broker.produced[place] = row["base_offset"] + sent
            rows.append({**row, "index": one["index"], "current_leader": NO_LEADER})
        topics.append({**_named(topic), "partition_responses": rows})
    return None if asked.values["acks"] == 0 else {"responses": topics}


NO_LEADER = {"leader_id": -1, "leader_epoch": -1}


def end_of_epoch(broker: Broker, asked: Asked) -> Reply:
    """No log was ever cut: an epoch ends where the log does."""
    topics = []
    for topic in asked.values["topics"]:
        rows = []
        for one in topic["partitions"]:
            partition = known(broker.recording, topic, one["partition"], "topic")
            if partition is None:
                row = _unknown(broker, asked, topic, "topic", one["partition"])
            else:
                row = {"error_code": 0, "leader_epoch": one["leader_epoch"], "end_offset": partition.end}
            rows.append({**row, "partition": one["partition"]})
        topics.append({"topic": topic["topic"], "partitions": rows})
    return {"topics": topics}


def init_producer_id(broker: Broker, asked: Asked) -> Reply:
    """As recorded; an idempotent producer without a transactional id always gets an id."""
    if asked.values["transactional_id"] is not None:
        return broker.recorded(asked)
    recorded = broker.recording.whole.tell((asked.api.key, broker.key(asked), None), again=False)
    if recorded is not None:
        return in_version(recorded.answer, asked.version)
    broker.producer_ids += 1
    return {"error_code": 0, "producer_id": FIRST_PRODUCER_ID + broker.producer_ids, "producer_epoch": 0}


FIRST_PRODUCER_ID = 1 << 40  # far from those that brokers give out in a test
