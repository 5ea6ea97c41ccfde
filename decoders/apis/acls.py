"""Access control lists (KIP-140)."""

from klamm.decoders.schema import ERROR, api, array, int8, int16, int32, string

# Hosts here are those of clients, as rules name them.
DESCRIBE_ACLS = api(
    29, "DescribeAcls", versions="0-3", flexible="2+",
    request=[
        int8("resource_type_filter"), string("resource_name_filter", null="0+"),
        int8("pattern_type_filter", "1+", default=3),
        string("principal_filter", null="0+"), string("host_filter", null="0+"), int8("operation"),
        int8("permission_type"),
    ],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
        array("resources", of=[
            int8("resource_type"), string("resource_name"),
            int8("pattern_type", "1+", default=3),
            array("acls", of=[
                string("principal"), string("host"), int8("operation"), int8("permission_type"),
            ]),
        ]),
    ],
)

CREATE_ACLS = api(
    30, "CreateAcls", versions="0-3", flexible="2+",
    request=[
        array("creations", of=[
            int8("resource_type"), string("resource_name"),
            int8("resource_pattern_type", "1+", default=3),
            string("principal"), string("host"), int8("operation"), int8("permission_type"),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("results", of=[int16("error_code", mark=ERROR), string("error_message", null="0+")]),
    ],
)

DELETE_ACLS = api(
    31, "DeleteAcls", versions="0-3", flexible="2+",
    request=[
        array("filters", of=[
            int8("resource_type_filter"), string("resource_name_filter", null="0+"),
            int8("pattern_type_filter", "1+", default=3),
            string("principal_filter", null="0+"), string("host_filter", null="0+"), int8("operation"),
            int8("permission_type"),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("filter_results", of=[
            int16("error_code", mark=ERROR), string("error_message", null="0+"),
            array("matching_acls", of=[
                int16("error_code", mark=ERROR), string("error_message", null="0+"), int8("resource_type"),
                string("resource_name"),
                int8("pattern_type", "1+", default=3),
                string("principal"), string("host"), int8("operation"), int8("permission_type"),
            ]),
        ]),
    ],
)
