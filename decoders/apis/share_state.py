"""The state of share groups that the brokers' share coordinators keep (KIP-932)."""

from klamm.decoders.schema import (
    ERROR,
    GROUP,
    PARTITION,
    TOPIC_ID,
    api,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)

STATE_BATCH = [int64("first_offset"), int64("last_offset"), int8("delivery_state"), int16("delivery_count")]

RESULTS = array("results", of=[
    uuid("topic_id", mark=TOPIC_ID),
    array("partitions", of=[
        int32("partition", mark=PARTITION), int16("error_code", mark=ERROR),
        string("error_message", null="0+", default=None),
    ]),
])

INITIALIZE_SHARE_GROUP_STATE = api(
    83, "InitializeShareGroupState", versions="0", flexible="0+",
    request=[
        string("group_id", mark=GROUP),
        array("topics", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition", mark=PARTITION), int32("state_epoch"), int64("start_offset"),
            ]),
        ]),
    ],
    response=[RESULTS],
)

READ_SHARE_GROUP_STATE = api(
    84, "ReadShareGroupState", versions="0", flexible="0+",
    request=[
        string("group_id", mark=GROUP),
        array("topics", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[int32("partition", mark=PARTITION), int32("leader_epoch")]),
        ]),
    ],
    response=[
        array("results", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", null="0+", default=None), int32("state_epoch"), int64("start_offset"),
                array("state_batches", of=STATE_BATCH),
            ]),
        ]),
    ],
)

WRITE_SHARE_GROUP_STATE = api(
    85, "WriteShareGroupState", versions="0-1", flexible="0+",
    request=[
        string("group_id", mark=GROUP),
        array("topics", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition", mark=PARTITION), int32("state_epoch"), int32("leader_epoch"),
                int64("start_offset"),
                int32("delivery_complete_count", "1+", default=-1),
                array("state_batches", of=STATE_BATCH),
            ]),
        ]),
    ],
    response=[RESULTS],
)

DELETE_SHARE_GROUP_STATE = api(
    86, "DeleteShareGroupState", versions="0", flexible="0+",
    request=[
        string("group_id", mark=GROUP),
        array("topics", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[int32("partition", mark=PARTITION)]),
        ]),
    ],
    response=[RESULTS],
)

# The early v0 of Kafka 3.9 and 4.0 has no leader_epoch in its response.
READ_SHARE_GROUP_STATE_SUMMARY = api(
    87, "ReadShareGroupStateSummary", versions="0-1", flexible="0+",
    request=[
        string("group_id", mark=GROUP),
        array("topics", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[int32("partition", mark=PARTITION), int32("leader_epoch")]),
        ]),
    ],
    response=[
        array("results", of=[
            uuid("topic_id", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition", mark=PARTITION), int16("error_code", mark=ERROR),
                string("error_message", null="0+", default=None), int32("state_epoch"), int32("leader_epoch"),
                int64("start_offset"),
                int32("delivery_complete_count", "1+", default=-1),
            ]),
        ]),
    ],
)
