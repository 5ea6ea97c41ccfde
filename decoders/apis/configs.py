"""Configurations of topics, brokers, groups and client metrics."""

from klamm.decoders.schema import ERROR, SECRET, api, array, boolean, int8, int16, int32, string

# A value may be a password, and which is one only the broker knows: all are marked.
DESCRIBE_CONFIGS = api(
    32, "DescribeConfigs", versions="0-4", flexible="4+",
    request=[
        array("resources", of=[
            int8("resource_type"), string("resource_name"),
            array("configuration_keys", null="0+", of="string"),
        ]),
        boolean("include_synonyms", "1+"),
        boolean("include_documentation", "3+"),
    ],
    response=[
        int32("throttle_time_ms"),
        array("results", of=[
            int16("error_code", mark=ERROR), string("error_message", null="0+"), int8("resource_type"),
            string("resource_name"),
            array("configs", of=[
                string("name"), string("value", null="0+", mark=SECRET), boolean("read_only"),
                boolean("is_default", "0"),
                int8("config_source", "1+", default=-1),
                boolean("is_sensitive"),
                array("synonyms", "1+", of=[
                    string("name"), string("value", null="1+", mark=SECRET), int8("source"),
                ]),
                int8("config_type", "3+"), string("documentation", "3+", null="3+"),
            ]),
        ]),
    ],
)

ALTER_CONFIGS = api(
    33, "AlterConfigs", versions="0-2", flexible="2+",
    request=[
        array("resources", of=[
            int8("resource_type"), string("resource_name"),
            array("configs", of=[string("name"), string("value", null="0+", mark=SECRET)]),
        ]),
        boolean("validate_only"),
    ],
    response=[
        int32("throttle_time_ms"),
        array("responses", of=[
            int16("error_code", mark=ERROR), string("error_message", null="0+", mark=SECRET),
            int8("resource_type"), string("resource_name"),
        ]),
    ],
)

INCREMENTAL_ALTER_CONFIGS = api(
    44, "IncrementalAlterConfigs", versions="0-1", flexible="1+",
    request=[
        array("resources", of=[
            int8("resource_type"), string("resource_name"),
            array("configs", of=[
                string("name"), int8("config_operation"), string("value", null="0+", mark=SECRET),
            ]),
        ]),
        boolean("validate_only"),
    ],
    response=[
        int32("throttle_time_ms"),
        array("responses", of=[
            int16("error_code", mark=ERROR), string("error_message", null="0+", mark=SECRET),
            int8("resource_type"), string("resource_name"),
        ]),
    ],
)

LIST_CONFIG_RESOURCES = api(
    74, "ListConfigResources", versions="0-1", flexible="0+", aliases=("ListClientMetricsResources",),
    request=[array("resource_types", "1+", of="int8")],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR),
        array("config_resources", of=[
            string("resource_name"),
            int8("resource_type", "1+", default=16),
        ]),
    ],
)
