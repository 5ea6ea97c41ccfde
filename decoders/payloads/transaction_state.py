"""The records of __transaction_state: what a transaction coordinator keeps (KIP-98, KIP-890)."""

from klamm.decoders.payloads.declaration import record
from klamm.decoders.schema import PARTITION, TOPIC, array, int8, int16, int32, int64, string

# fmt: off

TRANSACTION_LOG = record(
    0, "TransactionLog", versions="0-1", flexible="1+",
    key=[string("transactional_id")],
    value=[
        int64("producer_id"),
        int64("previous_producer_id", "1+", tag=0, default=-1),
        int64("next_producer_id", "1+", tag=1, default=-1),
        int16("producer_epoch"),
        int16("next_producer_epoch", "1+", tag=3, default=-1),
        int32("transaction_timeout_ms"), int8("transaction_status"),
        array("transaction_partitions", null="0+", of=[
            string("topic", mark=TOPIC), array("partition_ids", mark=PARTITION, of="int32"),
        ]),
        int64("transaction_last_update_timestamp_ms"), int64("transaction_start_timestamp_ms"),
        int16("client_transaction_version", "1+", tag=2),
    ],
)
