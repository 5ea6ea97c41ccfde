"""Client quotas (KIP-546)."""

from klamm.decoders.schema import ERROR, api, array, boolean, float64, int8, int16, int32, string

DESCRIBE_CLIENT_QUOTAS = api(
    48, "DescribeClientQuotas", versions="0-1", flexible="1+",
    request=[
        array("components", of=[string("entity_type"), int8("match_type"), string("match", null="0+")]),
        boolean("strict"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
        array("entries", null="0+", of=[
            array("entity", of=[string("entity_type"), string("entity_name", null="0+")]),
            array("values", of=[string("key"), float64("value")]),
        ]),
    ],
)

ALTER_CLIENT_QUOTAS = api(
    49, "AlterClientQuotas", versions="0-1", flexible="1+",
    request=[
        array("entries", of=[
            array("entity", of=[string("entity_type"), string("entity_name", null="0+")]),
            array("ops", of=[string("key"), float64("value"), boolean("remove")]),
        ]),
        boolean("validate_only"),
    ],
    response=[
        int32("throttle_time_ms"),
        array("entries", of=[
            int16("error_code", mark=ERROR), string("error_message", null="0+"),
            array("entity", of=[string("entity_type"), string("entity_name", null="0+")]),
        ]),
    ],
)
