"""The requests that the audit log tells of, and the fields of each that it has. Fields that are not named
here are never in it: so no secret is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klamm.decoders import API
from klamm.decoders.text import uuid_text

MOST = 100  # elements of one list
LONGEST = 500  # characters of one text

AUDITED = {  # API -> its fields
    "CreateTopics": "topics.name topics.num_partitions topics.replication_factor topics.configs.name "
    "validate_only",
    "DeleteTopics": "topic_names topics.name topics.topic_id",
    "DeleteRecords": "topics.name topics.partitions.partition_index topics.partitions.offset",
    "CreatePartitions": "topics.name topics.count validate_only",
    "AlterConfigs": "resources.resource_type resources.resource_name resources.configs.name validate_only",
    "IncrementalAlterConfigs": "resources.resource_type resources.resource_name resources.configs.name "
    "resources.configs.config_operation validate_only",
    "CreateAcls": "creations.resource_type creations.resource_name creations.resource_pattern_type "
    "creations.principal creations.host creations.operation creations.permission_type",
    "DeleteAcls": "filters.resource_type_filter filters.resource_name_filter filters.pattern_type_filter "
    "filters.principal_filter filters.host_filter filters.operation filters.permission_type",
    "AlterUserScramCredentials": "deletions.name deletions.mechanism upsertions.name upsertions.mechanism "
    "upsertions.iterations",
    "CreateDelegationToken": "owner_principal_type owner_principal_name renewers.principal_type "
    "renewers.principal_name max_lifetime_ms",
    "RenewDelegationToken": "renew_period_ms",
    "ExpireDelegationToken": "expiry_time_period_ms",
    "AlterClientQuotas": "entries.entity.entity_type entries.entity.entity_name entries.ops.key "
    "entries.ops.value entries.ops.remove validate_only",
    "DeleteGroups": "groups_names",
    "OffsetDelete": "group_id topics.name topics.partitions.partition_index",
    "AlterShareGroupOffsets": "group_id topics.topic_name topics.partitions.partition_index "
    "topics.partitions.start_offset",
    "DeleteShareGroupOffsets": "group_id topics.topic_name",
    "ElectLeaders": "election_type topic_partitions.topic topic_partitions.partitions",
    "AlterPartitionReassignments": "topics.name topics.partitions.partition_index "
    "topics.partitions.replicas",
    "AlterReplicaLogDirs": "dirs.path dirs.topics.name dirs.topics.partitions",
    "UpdateFeatures": "feature_updates.feature feature_updates.max_version_level "
    "feature_updates.upgrade_type validate_only",
    "WriteTxnMarkers": "markers.producer_id markers.transaction_result markers.topics.name",
    "UnregisterBroker": "broker_id",
    "UnregisterController": "controller_id",
    "AddRaftVoter": "voter_id listeners.name listeners.host listeners.port",
    "RemoveRaftVoter": "voter_id",
    "UpdateRaftVoter": "voter_id listeners.name listeners.host listeners.port",
}  # fmt: skip

ACL_RESOURCES = {
    1: "ANY",
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
CONFIG_RESOURCES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
PATTERNS = {1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}
OPERATIONS = {
    1: "ANY", 2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE",
    9: "CLUSTER_ACTION", 10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS", 14: "DESCRIBE_TOKENS", 15: "TWO_PHASE_COMMIT",
}  # fmt: skip
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
PERMISSIONS = {1: "ANY", 2: "DENY", 3: "ALLOW"}
CONFIGS: dict[str, dict[int, str]] = {
    "resource_type": CONFIG_RESOURCES,
    "config_operation": {0: "SET", 1: "DELETE", 2: "APPEND", 3: "SUBTRACT"},
}
WORDS = {  # API -> field -> Kafka's words for its numbers
    "AlterConfigs": {"resource_type": CONFIG_RESOURCES},
    "IncrementalAlterConfigs": CONFIGS,
    "CreateAcls": {
        "resource_type": ACL_RESOURCES,
        "resource_pattern_type": PATTERNS,
        "operation": OPERATIONS,
        "permission_type": PERMISSIONS,
    },
    "DeleteAcls": {
        "resource_type_filter": ACL_RESOURCES,
        "pattern_type_filter": PATTERNS,
        "operation": OPERATIONS,
        "permission_type": PERMISSIONS,
    },
    "AlterUserScramCredentials": {"mechanism": MECHANISMS},
}

Tree = dict[str, Any]  # field -> the tree of the fields in it; empty: its value
Words = Mapping[str, Mapping[int, str]]


def _tree(paths: str) -> Tree:
    found: Tree = {}
    for path in paths.split():
        inner = found
        for name in path.split("."):
            inner = inner.setdefault(name, {})
    return found


TREES = {API[name].key: _tree(paths) for name, paths in AUDITED.items()}


class Kept:
    """The fields of a request for the audit log. `left_out`: elements of lists beyond the first MOST."""

    def __init__(self, api: str, values: Mapping[str, Any]) -> None:
        self.left_out = 0
        self.fields = self._fields(values, TREES[API[api].key], WORDS.get(api, {}))

    def _fields(self, values: Mapping[str, Any], tree: Tree, words: Words) -> dict[str, Any]:
        named = {name: inner for name, inner in tree.items() if values.get(name) is not None}
        return {name: self._value(values[name], inner, words, name) for name, inner in named.items()}

    def _value(self, value: Any, tree: Tree, words: Words, name: str) -> Any:
        if isinstance(value, list):
            self.left_out += max(0, len(value) - MOST)
            return [self._value(each, tree, words, name) for each in value[:MOST]]
        if isinstance(value, Mapping):
            return self._fields(value, tree, words)
        if isinstance(value, str):
            return value if len(value) <= LONGEST else value[:LONGEST] + "..."
        if isinstance(value, bytes):
            return uuid_text(value)
        return words.get(name, {}).get(value, value)
