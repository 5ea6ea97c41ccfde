"""Every table of the pipeline: its columns in their order, their types in Spark's words, and what they mean.

Later columns go to the end of their table. docs/pipeline.md is made from this.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    name: str
    type: str
    about: str
    null: str = ""  # when it is


class Table(NamedTuple):
    about: str
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        return ", ".join(f"{column.name} {column.type}" for column in self.columns)


BODY, VARIANT = "body", "variant"  # of a frame, as JSON or as Spark has it
UNDECODABLE = "undecodable"  # why a body does not end as its layout does
ERRORS = "array<struct<code: smallint, name: string, count: int>>"
EVIDENCE = "array<struct<time: timestamp, capture: string, connection: bigint, exchange: bigint>>"

TIME = Column("time", "timestamp", "when its first byte came")
WHERE = (
    Column("capture", "string", "the run of klamm that saw it"),
    Column("connection", "bigint", "the connection, numbered within the capture"),
    Column("cluster", "string", "klamm's name for the cluster"),
    Column("broker", "string", "`2`, `controller 1`, `bootstrap`, or host:port"),
    Column("client", "string", "host:port"),
)
CLIENT_ID = Column("client_id", "string", "as the client calls itself", "it does not")
PRINCIPAL = Column("principal", "string", "of the client's certificate", "it had none")
EXCHANGE = Column("exchange", "bigint", "the request, numbered within the connection from 0", "not seen")
API = (
    Column("api", "string", "its name", "klamm does not know the API, or the request was not seen"),
    Column("api_key", "smallint", "the API's number", "the request was not seen"),
    Column("version", "smallint", "of the API", "the request was not seen"),
)
WHOSE = (  # of the rows about an exchange
    *WHERE,
    EXCHANGE,
    CLIENT_ID,
    Column("time", "timestamp", "when the request came; if it was not seen, the response"),
)
ANSWER = (
    Column("answered", "boolean", "the response was seen"),
    Column("latency_ms", "double", "from the request to the response", "one of them was not seen"),
)
TOPIC = (
    Column("topic", "string", "its name; its id where the capture never tells the name", "none is named"),
    Column("partition", "int", "its number", "none is named"),
)
ERROR = Column("error", "string", "Kafka's name of the error; `NONE`", "no response was seen")

FRAMES = Table(
    "A row for each frame and for each other event of a connection, as the source gives it. What cannot be read, or "
    "was lost by the capture as a whole, is a row without connection.",
    (
        *WHERE,
        EXCHANGE,
        CLIENT_ID,
        TIME,
        Column("time_ns", "bigint", "the same in ns since 1970"),
        Column("kind", "string", "`frame`, `token` (of SASL), `opened`, `closed`, `lost`"),
        Column("side", "string", "`request` or `response`", "it is of both"),
        *API,
        Column("correlation_id", "int", "the id that matches requests and responses"),
        Column("bytes", "bigint", "on the wire, with header and size field; of gaps too"),
        Column("awaits", "boolean", "a request: an answer is due; not so with acks=0"),
        Column("fate", "string", "`passed`; `rewritten`, `withheld` or `made` by klamm"),
        Column("lost", "bigint", "frames that are missing here, as far as that is known"),
        Column("text", "string", "why a connection ended, or which frames are missing and why"),
        Column("topics", "array<string>", "topics that it names", "it could not be read"),
        Column("topic_ids", "array<string>", "those of which it has the id only", "it could not be read"),
        Column("groups", "array<string>", "groups that it names", "it could not be read"),
        Column(
            "errors",
            ERRORS,
            "error codes but 0 that clients were told, and how often each",
            "it could not be read",
        ),
        Column(
            "body", "string", "JSON: its fields; records and secrets as their sizes", "it could not be read"
        ),
        PRINCIPAL,
        Column(
            UNDECODABLE,
            "string",
            "where and why its body does not end as its layout does",
            "it does, or only its size was kept",
        ),
    ),
)

TABLES = {
    "frames": FRAMES,
    "exchanges": Table(
        "A request and its response.",
        (
            *WHOSE,
            *API,
            Column("correlation_id", "int", "the id that matches request and response"),
            Column("request_bytes", "bigint", "on the wire, with header and size field", "not seen"),
            Column("response_bytes", "bigint", "on the wire, with header and size field", "none was seen"),
            Column("awaits", "boolean", "an answer was due: not so with acks=0"),
            *ANSWER,
            Column(
                "turn_ms",
                "double",
                "the part of it that passed until the answer before it, on the same connection, had come",
                "one of them was not seen",
            ),
            Column("request_fate", "string", "`passed`; `rewritten`, `withheld` or `made` by klamm", "not seen"),
            Column("response_fate", "string", "the same of the response", "none was seen"),
            Column("software", "string", "name and version of the client library, from ApiVersions", "it was not"),
            Column("topics", "array<string>", "topics that are named in it, by name as far as the capture tells them"),
            Column("groups", "array<string>", "groups that are named in it"),
            Column("errors", ERRORS, "error codes but 0 that the client was told, and how often each"),
            Column("request_body", "variant", "its fields; records and secrets as their sizes", "not there"),
            Column("response_body", "variant", "the same of the response", "not there"),
            PRINCIPAL,
        ),
    ),
    "produce": Table(
        "A row for each partition of a Produce request.",
        (
            *WHOSE,
            API[2],
            *TOPIC,
            Column("acks", "smallint", "-1 is all"),
            Column("transactional_id", "string", "of the producer", "it has none"),
            Column("bytes", "bigint", "of the batches"),
            Column("batches", "int", "how many"),
            Column("records", "bigint", "how many"),
            Column("codec", "string", "of the first batch: `none`, `gzip`, `snappy`, `lz4`, `zstd`", "no batch"),
            Column("producer_id", "bigint", "of the first batch; -1 without idempotence", "no batch"),
            Column("producer_epoch", "smallint", "of the first batch", "no batch"),
            Column("base_sequence", "int", "of the first batch; -1 without idempotence", "no batch"),
            *ANSWER,
            ERROR,
            Column("base_offset", "bigint", "where the broker put it", "no response was seen"),
            Column("throttle_ms", "int", "throttle_time_ms of the response", "no response was seen"),
            Column("base_timestamp", "timestamp", "of the first record", "no batch, or none was given"),
            Column("timeout_ms", "int", "as asked: so long the leader may wait for its followers"),
        ),
    ),
    "fetch": Table(
        "A row for each partition that a Fetch exchange names; one row without topic where it names none.",
        (
            *WHOSE,
            API[2],
            *TOPIC,
            Column("max_wait_ms", "int", "as asked"),
            Column("min_bytes", "int", "as asked"),
            Column("session_id", "int", "of the fetch session (KIP-227), as asked; 0 is none", "version below 7"),
            Column("session_epoch", "int", "as asked; 0 opens one, -1 ends it or asks for none", "version below 7"),
            Column("is_replica", "boolean", "a broker fetches"),
            Column("isolation_level", "tinyint", "0 read_uncommitted, 1 read_committed", "version below 4"),
            Column("fetch_offset", "bigint", "where it wants to read", "the request does not list the partition"),
            *ANSWER,
            ERROR,
            Column("session_error", "string", "Kafka's name of the error of the whole answer", "no response was seen"),
            Column("high_watermark", "bigint", "what the broker has", "the answer does not list the partition"),
            Column("log_start_offset", "bigint", "what it still has", "the answer does not list the partition"),
            Column("bytes", "bigint", "of the batches in the answer"),
            Column("batches", "int", "how many, in part or whole"),
            Column("records", "bigint", "how many, those before fetch_offset included"),
            Column("first_offset", "bigint", "of the first batch", "no batch"),
            Column("next_offset", "bigint", "one after the last batch", "no batch"),
            Column("throttle_ms", "int", "throttle_time_ms of the response", "no response was seen"),
            Column(
                "last_stable_offset",
                "bigint",
                "up to which all transactions have ended; -1 where the broker does not tell it",
                "the answer does not list the partition, or version below 4",
            ),
            Column("rack", "string", "client.rack of the consumer (KIP-392); empty where it has none", "version below 11"),
        ),
    ),
    "batches": Table(
        "A row for each record batch in a Produce request or Fetch response.",
        (
            *WHOSE,
            Column("side", "string", "`request`: produced; `response`: fetched"),
            *TOPIC,
            Column("base_offset", "bigint", "0 where it is produced"),
            Column("magic", "tinyint", "format: 2, or 0 and 1 of old clients"),
            Column("codec", "string", "`none`, `gzip`, `snappy`, `lz4`, `zstd`"),
            Column("records", "int", "how many; 1 for a compressed batch of magic 0 and 1 whose content is blank"),
            Column("bytes", "int", "with its header"),
            Column("uncompressed_bytes", "int", "of its records", "content is blank, or its codec is not installed"),
            Column("base_timestamp", "timestamp", "of the first record", "none was given"),
            Column("max_timestamp", "timestamp", "the latest", "none was given"),
            Column("producer_id", "bigint", "-1 without idempotence"),
            Column("producer_epoch", "smallint", "-1 without idempotence"),
            Column("base_sequence", "int", "-1 without idempotence"),
            Column("transactional", "boolean", "it is part of a transaction"),
            Column("control", "boolean", "a marker of a transaction's end"),
            Column("keys", "int", "how many different keys", "content is blank"),
            Column("top_key_records", "int", "how many records have the most frequent key", "content is blank"),
        ),
    ),
    "groups": Table(
        "A row for each exchange by which a member lives in its group: of JoinGroup, SyncGroup, Heartbeat, "
        "LeaveGroup, OffsetCommit and ConsumerGroupHeartbeat.",
        (
            *WHOSE,
            Column("api", "string", "its name"),
            API[2],
            Column("group", "string", "its name"),
            Column("member_id", "string", "as the answer to a join gives it; empty before"),
            Column("instance_id", "string", "group.instance.id", "not static"),
            Column("generation", "int", "generation or member epoch: of the answer, if it has one"),
            Column("session_timeout_ms", "int", "of a classic member", "no JoinGroup"),
            Column("rebalance_timeout_ms", "int", "max.poll.interval.ms of a Java client", "it is not told"),
            Column("heartbeat_interval_ms", "int", "as the coordinator wants it", "no ConsumerGroupHeartbeat"),
            Column("leader", "boolean", "this member is the leader now", "no JoinGroup answer"),
            Column("members", "int", "in the answer to the leader", "no JoinGroup answer to a leader"),
            Column("assigned", "int", "partitions given to it", "no SyncGroup or ConsumerGroupHeartbeat answer with them"),
            Column("committed", "int", "partitions committed", "no OffsetCommit"),
            *ANSWER,
            ERROR,
            Column("throttle_ms", "int", "throttle_time_ms of the response", "no response was seen"),
            Column(
                "assignment",
                "array<string>",
                "the same partitions by name, as `orders-3`",
                "no SyncGroup or ConsumerGroupHeartbeat answer with them",
            ),
            Column(
                "subscribed",
                "array<string>",
                "the topics that it subscribes to, as far as they can be read",
                "no JoinGroup of a consumer or ConsumerGroupHeartbeat with them",
            ),
            Column("protocols", "array<string>", "the assignors that it offers, the preferred first", "no JoinGroup"),
        ),
    ),
    "commits": Table(
        "A row for each partition of an OffsetCommit or TxnOffsetCommit.",
        (
            *WHOSE,
            Column("api", "string", "its name"),
            Column("group", "string", "its name"),
            Column("member_id", "string", "empty without a group membership"),
            *TOPIC,
            Column("offset", "bigint", "committed"),
            *ANSWER,
            ERROR,
        ),
    ),
    "offsets": Table(
        "A row for each partition of a ListOffsets or OffsetFetch exchange: where consumers begin.",
        (
            *WHOSE,
            Column("api", "string", "its name"),
            Column("group", "string", "its name", "ListOffsets"),
            *TOPIC,
            Column("wanted", "bigint", "timestamp asked for; -1 the end, -2 the beginning", "OffsetFetch"),
            Column("offset", "bigint", "the answer; -1 is none", "no response was seen"),
            *ANSWER,
            ERROR,
        ),
    ),
    "shares": Table(
        "A row for each partition of a ShareFetch or ShareAcknowledge exchange of a share group (KIP-932).",
        (
            *WHOSE,
            Column("api", "string", "its name"),
            Column("group", "string", "its name"),
            Column("member_id", "string", "as the member calls itself"),
            *TOPIC,
            Column("accepted", "bigint", "records that are acknowledged as done"),
            Column("released", "bigint", "records that are given back, for another delivery"),
            Column("rejected", "bigint", "records that nobody is to get again"),
            Column("renewed", "bigint", "records whose lock is lengthened (KIP-1222)"),
            Column("acquired", "bigint", "records that the answer gives to this member"),
            Column("again", "bigint", "those of them that were delivered before"),
            Column("delivery_count", "smallint", "the highest of the acquired records; 1 for the first", "none is acquired"),
            *ANSWER,
            ERROR,
        ),
    ),
    "transactions": Table(
        "A row for each InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit and EndTxn.",
        (
            *WHOSE,
            Column("api", "string", "its name"),
            Column("transactional_id", "string", "of the producer", "it has none"),
            Column("producer_id", "bigint", "as told; of InitProducerId the answer's"),
            Column("producer_epoch", "smallint", "the same"),
            Column("timeout_ms", "int", "transaction.timeout.ms", "no InitProducerId"),
            Column("committed", "boolean", "EndTxn: it commits, and does not abort", "no EndTxn"),
            *ANSWER,
            Column("error", "string", "Kafka's name of the first error of the answer; `NONE`", "no response was seen"),
        ),
    ),
    "metadata": Table(
        "A row for each partition in an answer to Metadata: the leader, as in that client's answer.",
        (
            *WHOSE,
            *TOPIC,
            Column("topic_id", "string", "as Kafka prints it", "version below 10"),
            Column("leader", "int", "node id; -1 is none", "the topic has an error"),
            Column("leader_epoch", "int", "-1 where it is not told", "the topic has an error"),
            Column("replicas", "int", "how many", "the topic has an error"),
            Column("isr", "int", "how many in sync", "the topic has an error"),
            Column("error", "string", "Kafka's name of the topic's error, else of the partition's; `NONE`"),
            Column("auto_create", "boolean", "allow_auto_topic_creation, as asked"),
            Column("in_sync", "array<int>", "node ids of the replicas in sync", "the topic has an error"),
            Column("leader_rack", "string", "broker.rack of the leader", "it has none, or the topic has an error"),
            Column("leader_address", "string", "host:port of the leader", "it is not there, or the topic has an error"),
        ),
    ),
    "connections": Table(
        "A row for each connection.",
        (
            *WHERE,
            CLIENT_ID,
            Column("first", "timestamp", "its first row"),
            Column("last", "timestamp", "its last row"),
            Column("opened", "timestamp", "when it was made", "before the capture"),
            Column("closed", "timestamp", "when it ended", "not in the capture"),
            Column("why", "string", "it ended", "not in the capture"),
            Column("software", "string", "name and version of the client library, from ApiVersions", "it was not"),
            Column("mechanism", "string", "of SASL", "none was asked for"),
            Column("auth_error", "string", "Kafka's name of the error of SaslHandshake or SaslAuthenticate", "none"),
            Column("requests", "bigint", "frames of the client"),
            Column("responses", "bigint", "frames of the broker"),
            Column("request_bytes", "bigint", "of the client's frames"),
            Column("response_bytes", "bigint", "of the broker's frames"),
            Column("unanswered", "bigint", "requests whose due answer was not seen"),
            Column("lost", "bigint", "frames that are missing in the capture"),
        ),
    ),
    "findings": Table(
        "What the detectors found.",
        (
            Column("detector", "string", "its name"),
            Column("severity", "string", "`high`, `medium` or `low`"),
            Column("cluster", "string", "klamm's name for the cluster"),
            Column("client_id", "string", "who", "it has none, or it is about a broker or topic"),
            Column("subject", "string", "`topic orders`, `partition orders-3`, `group billing`, `broker 2`", "the client"),
            Column("first", "timestamp", "when it was first seen"),
            Column("last", "timestamp", "when it was last seen"),
            Column("count", "bigint", "how often"),
            Column("what", "string", "a sentence with the measured figures"),
            Column("evidence", EVIDENCE, "exchanges to look at: the first and the last; of connections, exchange 0"),
        ),
    ),
}  # fmt: skip
