"""Authentication: SASL, delegation tokens (KIP-48), SCRAM credentials (KIP-554)."""

from klamm.decoders.schema import ERROR, SECRET, api, array, bytestring, int8, int16, int32, int64, string

# After v0 come raw tokens in frames without a header; after v1, SaslAuthenticate (KIP-152).
SASL_HANDSHAKE = api(
    17, "SaslHandshake", versions="0-1", flexible=None,
    request=[string("mechanism")],
    response=[int16("error_code", mark=ERROR), array("mechanisms", of="string")],
)

SASL_AUTHENTICATE = api(
    36, "SaslAuthenticate", versions="0-2", flexible="2+",
    request=[bytestring("auth_bytes", mark=SECRET)],
    response=[
        int16("error_code", mark=ERROR), string("error_message", null="0+"),
        bytestring("auth_bytes", mark=SECRET),
        int64("session_lifetime_ms", "1+"),
    ],
)

# The hmac is the token's password.
CREATE_DELEGATION_TOKEN = api(
    38, "CreateDelegationToken", versions="0-3", flexible="2+",
    request=[
        string("owner_principal_type", "3+", null="3+"), string("owner_principal_name", "3+", null="3+"),
        array("renewers", of=[string("principal_type"), string("principal_name")]),
        int64("max_lifetime_ms"),
    ],
    response=[
        int16("error_code", mark=ERROR), string("principal_type"), string("principal_name"),
        string("token_requester_principal_type", "3+"), string("token_requester_principal_name", "3+"),
        int64("issue_timestamp_ms"), int64("expiry_timestamp_ms"), int64("max_timestamp_ms"),
        string("token_id"), bytestring("hmac", mark=SECRET), int32("throttle_time_ms"),
    ],
)

RENEW_DELEGATION_TOKEN = api(
    39, "RenewDelegationToken", versions="0-2", flexible="2+",
    request=[bytestring("hmac", mark=SECRET), int64("renew_period_ms")],
    response=[int16("error_code", mark=ERROR), int64("expiry_timestamp_ms"), int32("throttle_time_ms")],
)

EXPIRE_DELEGATION_TOKEN = api(
    40, "ExpireDelegationToken", versions="0-2", flexible="2+",
    request=[bytestring("hmac", mark=SECRET), int64("expiry_time_period_ms")],
    response=[int16("error_code", mark=ERROR), int64("expiry_timestamp_ms"), int32("throttle_time_ms")],
)

DESCRIBE_DELEGATION_TOKEN = api(
    41, "DescribeDelegationToken", versions="0-3", flexible="2+",
    request=[array("owners", null="0+", of=[string("principal_type"), string("principal_name")])],
    response=[
        int16("error_code", mark=ERROR),
        array("tokens", of=[
            string("principal_type"), string("principal_name"),
            string("token_requester_principal_type", "3+"), string("token_requester_principal_name", "3+"),
            int64("issue_timestamp"), int64("expiry_timestamp"), int64("max_timestamp"), string("token_id"),
            bytestring("hmac", mark=SECRET),
            array("renewers", of=[string("principal_type"), string("principal_name")]),
        ]),
        int32("throttle_time_ms"),
    ],
)

DESCRIBE_USER_SCRAM_CREDENTIALS = api(
    50, "DescribeUserScramCredentials", versions="0", flexible="0+",
    request=[array("users", null="0+", of=[string("name")])],
    response=[
        int32("throttle_time_ms"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
        array("results", of=[
            string("user"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
            array("credential_infos", of=[int8("mechanism"), int32("iterations")]),
        ]),
    ],
)

ALTER_USER_SCRAM_CREDENTIALS = api(
    51, "AlterUserScramCredentials", versions="0", flexible="0+",
    request=[
        array("deletions", of=[string("name"), int8("mechanism")]),
        array("upsertions", of=[
            string("name"), int8("mechanism"), int32("iterations"), bytestring("salt", mark=SECRET),
            bytestring("salted_password", mark=SECRET),
        ]),
    ],
    response=[
        int32("throttle_time_ms"),
        array("results", of=[
            string("user"), int16("error_code", mark=ERROR), string("error_message", null="0+"),
        ]),
    ],
)
