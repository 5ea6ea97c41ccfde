"""Metrics that clients send (KIP-714)."""

from klamm.decoders.schema import (
    ERROR,
    TELEMETRY,
    api,
    array,
    boolean,
    bytestring,
    int8,
    int16,
    int32,
    uuid,
)

GET_TELEMETRY_SUBSCRIPTIONS = api(
    71, "GetTelemetrySubscriptions", versions="0", flexible="0+",
    request=[uuid("client_instance_id")],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), uuid("client_instance_id"),
        int32("subscription_id"), array("accepted_compression_types", of="int8"), int32("push_interval_ms"),
        int32("telemetry_max_bytes"), boolean("delta_temporality"), array("requested_metrics", of="string"),
    ],
)

PUSH_TELEMETRY = api(
    72, "PushTelemetry", versions="0", flexible="0+",
    request=[
        uuid("client_instance_id"), int32("subscription_id"), boolean("terminating"),
        int8("compression_type"), bytestring("metrics", mark=TELEMETRY),
    ],
    response=[int32("throttle_time_ms"), int16("error_code", mark=ERROR)],
)
