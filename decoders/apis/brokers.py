"""Brokers and their controller (KIP-631)."""

from klamm.decoders.schema import (
    ERROR,
    PARTITION,
    SECRET,
    TOPIC,
    TOPIC_ID,
    api,
    array,
    boolean,
    bytestring,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)

# Told to the controller, not to clients: no marks.
LISTENER = [string("name"), string("host"), uint16("port"), int16("security_protocol")]
FEATURE = [string("name"), int16("min_supported_version"), int16("max_supported_version")]

ALTER_PARTITION = api(
    56, "AlterPartition", versions="0-3", flexible="0+", aliases=("AlterIsr",),
    request=[
        int32("broker_id"), int64("broker_epoch", default=-1),
        array("topics", of=[
            string("topic_name", "0-1", mark=TOPIC),
            uuid("topic_id", "2+", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int32("leader_epoch"),
                array("new_isr", "0-2", of="int32"),
                array("new_isr_with_epochs", "3+", of=[
                    int32("broker_id"), int64("broker_epoch", default=-1),
                ]),
                int8("leader_recovery_state", "1+"),
                int32("partition_epoch"),
            ]),
        ]),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        array("topics", of=[
            string("topic_name", "0-1", mark=TOPIC),
            uuid("topic_id", "2+", mark=TOPIC_ID),
            array("partitions", of=[
                int32("partition_index", mark=PARTITION), int16("error_code", mark=ERROR), int32("leader_id"),
                int32("leader_epoch"), array("isr", of="int32"),
                int8("leader_recovery_state", "1+"),
                int32("partition_epoch"),
            ]),
        ]),
    ],
)

UPDATE_FEATURES = api(
    57, "UpdateFeatures", versions="0-2", flexible="0+",
    request=[
        int32("timeout_ms", default=60000),
        array("feature_updates", of=[
            string("feature"), int16("max_version_level"),
            boolean("allow_downgrade", "0"),
            int8("upgrade_type", "1+", default=1),
        ]),
        boolean("validate_only", "1+"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
        array("results", "0-1", of=[
            string("feature"), int16("error_code", mark=ERROR), string("error_message", null="0-1"),
        ]),
    ],
)

# Whole requests and responses of others, with whatever secrets are in them (KIP-590).
ENVELOPE = api(
    58, "Envelope", versions="0", flexible="0+",
    request=[
        bytestring("request_data", mark=SECRET), bytestring("request_principal", null="0+"),
        bytestring("client_host_address"),
    ],
    response=[
        bytestring("response_data", null="0+", default=None, mark=SECRET), int16("error_code", mark=ERROR),
    ],
)

BROKER_REGISTRATION = api(
    62, "BrokerRegistration", versions="0-4", flexible="0+",
    request=[
        int32("broker_id"), string("cluster_id"), uuid("incarnation_id"),
        array("listeners", of=LISTENER),
        array("features", of=FEATURE),
        string("rack", null="0+"),
        boolean("is_migrating_zk_broker", "1+"),
        array("log_dirs", "2+", of="uuid"),
        int64("previous_broker_epoch", "3+", default=-1),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), int64("broker_epoch", default=-1),
    ],
)

BROKER_HEARTBEAT = api(
    63, "BrokerHeartbeat", versions="0-2", flexible="0+",
    request=[
        int32("broker_id"), int64("broker_epoch", default=-1), int64("current_metadata_offset"),
        boolean("want_fence"), boolean("want_shut_down"),
        array("offline_log_dirs", "1+", tag=0, of="uuid"),
        array("cordoned_log_dirs", "2+", tag=1, null="2+", default=None, of="uuid"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), boolean("is_caught_up"),
        boolean("is_fenced", default=True), boolean("should_shut_down"),
    ],
)

UNREGISTER_BROKER = api(
    64, "UnregisterBroker", versions="0", flexible="0+",
    request=[int32("broker_id")],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
    ],
)

UNREGISTER_CONTROLLER = api(
    94, "UnregisterController", versions="0", flexible="0+",
    request=[int32("controller_id")],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
    ],
)

CONTROLLER_REGISTRATION = api(
    70, "ControllerRegistration", versions="0", flexible="0+",
    request=[
        int32("controller_id"), uuid("incarnation_id"), boolean("zk_migration_ready"),
        array("listeners", of=LISTENER),
        array("features", of=FEATURE),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
    ],
)
