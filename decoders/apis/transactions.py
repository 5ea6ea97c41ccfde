"""Producer ids and transactions (KIP-98)."""

from klamm.decoders.schema import (
    CLIENT_TEXT,
    ERROR,
    GROUP,
    PARTITION,
    TOPIC,
    TOPIC_ID,
    TRANSACTIONAL_ID,
    api,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)

TOPIC_PARTITIONS = [string("name", mark=TOPIC), array("partitions", mark=PARTITION, of="int32")]
PARTITION_RESULT = [int32("partition_index", mark=PARTITION), int16("partition_error_code", mark=ERROR)]
PARTITION_ERROR = [int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR)]

INIT_PRODUCER_ID = api(
    22, "InitProducerId", versions="0-6", flexible="2+", unstable="6",
    request=[
        string("transactional_id", null="0+", mark=TRANSACTIONAL_ID), int32("transaction_timeout_ms"),
        int64("producer_id", "3+", default=-1), int16("producer_epoch", "3+", default=-1),
        boolean("enable_2pc", "6+"), boolean("keep_prepared_txn", "6+"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), int64("producer_id", default=-1),
        int16("producer_epoch"),
        int64("ongoing_txn_producer_id", "6+", default=-1),
        int16("ongoing_txn_producer_epoch", "6+", default=-1),
    ],
)

ADD_PARTITIONS_TO_TXN = api(
    24, "AddPartitionsToTxn", versions="0-5", flexible="3+",
    request=[
        string("v3_and_below_transactional_id", "0-3", mark=TRANSACTIONAL_ID),
        int64("v3_and_below_producer_id", "0-3"),
        int16("v3_and_below_producer_epoch", "0-3"),
        array("v3_and_below_topics", "0-3", of=TOPIC_PARTITIONS),
        array("transactions", "4+", of=[
            string("transactional_id", mark=TRANSACTIONAL_ID),
            int64("producer_id"), int16("producer_epoch"), boolean("verify_only"),
            array("topics", of=TOPIC_PARTITIONS),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("results_by_topic_v3_and_below", "0-3", of=[
            string("name", mark=TOPIC),
            array("results_by_partition", of=PARTITION_RESULT),
        ]),
        int16("error_code", "4+", mark=ERROR),
        array("results_by_transaction", "4+", of=[
            string("transactional_id", mark=TRANSACTIONAL_ID),
            array("topic_results", of=[
                string("name", mark=TOPIC),
                array("results_by_partition", of=PARTITION_RESULT),
            ]),
        ]),
    ],
)

ADD_OFFSETS_TO_TXN = api(
    25, "AddOffsetsToTxn", versions="0-4", flexible="3+",
    request=[
        string("transactional_id", mark=TRANSACTIONAL_ID),
        int64("producer_id"), int16("producer_epoch"),
        string("group_id", mark=GROUP),
    ],
    response=[int32("throttle_time_ms"), int16("error_code", mark=ERROR)],
)

END_TXN = api(
    26, "EndTxn", versions="0-5", flexible="3+",
    request=[
        string("transactional_id", mark=TRANSACTIONAL_ID),
        int64("producer_id"), int16("producer_epoch"), boolean("committed"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        int64("producer_id", "5+", default=-1), int16("producer_epoch", "5+", default=-1),
    ],
)

WRITE_TXN_MARKERS = api(
    27, "WriteTxnMarkers", versions="0-2", flexible="1+",
    request=[
        array("markers", of=[
            int64("producer_id"), int16("producer_epoch"), boolean("transaction_result"),
            array("topics", of=[
                string("name", mark=TOPIC), array("partition_indexes", mark=PARTITION, of="int32"),
            ]),
            int32("coordinator_epoch"),
            int8("transaction_version", "2+"),
        ]),
    ],
    response=[
        array("markers", of=[
            int64("producer_id"),
            array("topics", of=[
                string("name", mark=TOPIC),
                array("partitions", of=PARTITION_ERROR),
            ]),
        ]),
    ],
)

TXN_OFFSET_COMMIT = api(
    28, "TxnOffsetCommit", versions="0-6", flexible="3+",
    request=[
        string("transactional_id", mark=TRANSACTIONAL_ID), string("group_id", mark=GROUP),
        int64("producer_id"), int16("producer_epoch"),
        int32("generation_id_or_member_epoch", "3+", default=-1), string("member_id", "3+"),
        string("group_instance_id", "3+", null="3+", default=None, mark=CLIENT_TEXT),
        array("topics", of=[
            uuid("topic_id", "6+", mark=TOPIC_ID), string("name", "0-5", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int64("committed_offset"),
                int32("committed_leader_epoch", "2+", default=-1),
                string("committed_metadata", null="0+", mark=CLIENT_TEXT),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("topics", of=[
            uuid("topic_id", "6+", mark=TOPIC_ID), string("name", "0-5", mark=TOPIC),
            array("partitions", of=PARTITION_ERROR),
        ]),
    ],
)

DESCRIBE_PRODUCERS = api(
    61, "DescribeProducers", versions="0", flexible="0+",
    request=[
        array("topics", of=[
            string("name", mark=TOPIC), array("partition_indexes", mark=PARTITION, of="int32"),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("topics", of=[
            string("name", mark=TOPIC),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", null="0+", default=None),
                array("active_producers", of=[
                    int64("producer_id"), int32("producer_epoch"), int32("last_sequence", default=-1),
                    int64("last_timestamp", default=-1), int32("coordinator_epoch"),
                    int64("current_txn_start_offset", default=-1),
                ]),
            ]),
        ]),
    ],
)

DESCRIBE_TRANSACTIONS = api(
    65, "DescribeTransactions", versions="0", flexible="0+",
    request=[array("transactional_ids", mark=TRANSACTIONAL_ID, of="string")],
    response=[
        int32("throttle_time_ms"),
        array("transaction_states", of=[
            int16("error_code", mark=ERROR),
            string("transactional_id", mark=TRANSACTIONAL_ID), string("transaction_state"),
            int32("transaction_timeout_ms"), int64("transaction_start_time_ms"), int64("producer_id"),
            int16("producer_epoch"),
            array("topics", of=[
                string("topic", mark=TOPIC), array("partitions", mark=PARTITION, of="int32"),
            ]),
        ]),
    ],
)

LIST_TRANSACTIONS = api(
    66, "ListTransactions", versions="0-2", flexible="0+",
    request=[
        array("state_filters", of="string"), array("producer_id_filters", of="int64"),
        int64("duration_filter", "1+", default=-1),
        string("transactional_id_pattern", "2+", null="2+", default=None),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        array("unknown_state_filters", of="string"),
        array("transaction_states", of=[
            string("transactional_id", mark=TRANSACTIONAL_ID),
            int64("producer_id"), string("transaction_state"),
        ]),
    ],
)

ALLOCATE_PRODUCER_IDS = api(
    67, "AllocateProducerIds", versions="0", flexible="0+",
    request=[int32("broker_id"), int64("broker_epoch", default=-1)],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), int64("producer_id_start"),
        int32("producer_id_len"),
    ],
)
