"""Answers that refuse a request with an error code, for every API and version; and answers edited to do so.

Values are those of `klamm.decoders.decode` and `encode`. None that is given is changed; what comes back
shares its unchanged parts. A Part says what one element of a message is of, as far as the message tells:
"topic", "topic_id", "partition", "group", else Kafka's own names ("resource_type", "resource_name",
"transactional_id", "member_id", "user", "key", ...). So a predicate on parts must do without those that are
not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from klamm.decoders import API, ERRORS
from klamm.decoders.schema import Api, Field, default_of, version_range
from klamm.rules.errors.places import Node, Path, Place, Values, elements, key_of, names_of, places, tree

__all__ = ["NoPlace", "Only", "Part", "Path", "Place", "Values", "edit_answer", "error_answer", "places"]

Part = Mapping[str, Any]
Only = Callable[[Part], bool]

# Versions in which Kafka's own getErrorResponse puts the code at the top level and at every part too.
ALSO = {
    "Fetch": "7-12",
    "Metadata": "13+",
    "LeaderAndIsr": "0+",
    "StopReplica": "0+",
    "ElectLeaders": "1+",
    "AlterPartitionReassignments": "0+",
    "DescribeUserScramCredentials": "0+",
}

# Fields that do not have their default beside an error.
NO_LEADER = {"leader_id": -1, "leader_epoch": -1}
BESIDE_ERROR: dict[str, Values] = {
    "Produce": {"base_offset": -1},
    "Fetch": {"high_watermark": -1},
    "Metadata": {"leader_id": -1},
    "DescribeTopicPartitions": {"leader_id": -1},
    "DeleteRecords": {"low_watermark": -1},
    "OffsetFetch": {"committed_offset": -1},
    "FindCoordinator": {"node_id": -1, "port": -1},
    "JoinGroup": {"protocol_name": None},
    "InitProducerId": {"producer_epoch": -1},
    "DescribeClientQuotas": {"entries": None},
    "ShareFetch": {"current_leader": NO_LEADER},
    "ShareAcknowledge": {"current_leader": NO_LEADER},
    "CreateDelegationToken": {
        "principal_type": "User", "principal_name": "ANONYMOUS",
        "token_requester_principal_type": "User", "token_requester_principal_name": "ANONYMOUS",
        "issue_timestamp_ms": -1, "expiry_timestamp_ms": -1, "max_timestamp_ms": -1,
    },
}  # fmt: skip

# Fields that an edited answer keeps beside an error, besides the throttle time and the part's keys.
REPLICAS = {"replica_nodes", "isr_nodes", "offline_replicas", "is_internal"}
KEPT: dict[str, set[str]] = {
    "Fetch": {"session_id"},  # a refused request's too
    "Metadata": REPLICAS,
    "DescribeTopicPartitions": REPLICAS | {"eligible_leader_replicas", "last_known_elr"},
    "DeleteAcls": {"pattern_type", "principal", "host", "operation", "permission_type"},
}

# Codes of a side matter: the other fields of their part stay valid.
ASIDE = {"topic_config_error_code", "acknowledge_error_code"}

# APIs where Kafka adds the meaning of the error in words; elsewhere the message is null.
SPEAKING = {
    "FindCoordinator", "DescribeConfigs", "AlterClientQuotas", "DescribeQuorum", "UnregisterBroker",
    "UnregisterController",
    "ControllerRegistration", "AddRaftVoter", "RemoveRaftVoter", "ReadShareGroupState",
    "WriteShareGroupState", "ReadShareGroupStateSummary", "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
}  # fmt: skip

SESSION_EPOCHS = {"Fetch": "session_epoch", "ShareFetch": "share_session_epoch"}


class NoPlace(LookupError):
    """The answer has no place for this error: the text says why. `edit`: the broker's own answer has one."""

    def __init__(self, reason: str, *, edit: bool) -> None:
        super().__init__(reason)
        self.edit = edit


def error_answer(
    api: Api | int | str,
    version: int,
    request: Values,
    code: int,
    place: Place | Path | None = None,
    only: Only | None = None,
) -> Values | None:
    """The response of a broker that refuses a (decoded) request; None where it sends none (Produce, acks=0).

    Every part that the request names is in it, with the code at `place`. None is where Kafka's own
    getErrorResponse puts it, or, if `only` is given, the innermost parts that a request names. With `only`,
    the answer has just those parts for which it is true. What is below a place is empty; other codes are 0;
    the rest is as Kafka has it on an error.

    Raises UnknownApi, and NoPlace where the request does not name the parts: it asks for all, a session holds
    them, or only the broker knows them. ApiVersions with UNSUPPORTED_VERSION is answered in the layout of
    version 0, whatever was asked: pass that version.
    """
    of = API[key_of(api)]
    if of.name == "Produce" and request["acks"] == 0:
        return None
    error = _Error(of, version, code, _chosen(of, version, place, only), only)
    what = f"{of.name} v{version} {' and '.join(map(str, error.places))}"
    if not all(p.asked for p in error.places):
        raise NoPlace(f"{what}: only the broker knows these parts", edit=True)
    if all(p.arrays for p in error.places) and request.get(SESSION_EPOCHS.get(of.name, ""), 0) > 0:
        raise NoPlace(f"{what}: a session holds these parts", edit=True)
    known = {name: request[name] for name in KEPT.get(of.name, ()) if name in request}
    answer = error.refused(tree(of.key, version), request, known, names_in(request, of, version))
    if not error.placed:
        raise NoPlace(f"{what}: the request names none of these parts", edit=True)
    return answer


def edit_answer(
    api: Api | int | str,
    version: int,
    response: Values,
    code: int,
    place: Place | Path | None = None,
    only: Only | None = None,
    request: Values | None = None,
) -> Values:
    """The broker's (decoded) response with the code at `place`, in the parts for which `only` is true.

    What is beside a code is reset as on any error, what is below it emptied; the throttle time, what tells
    the part, and a partition's replicas stay. Where no part matches, `response` itself comes back. With
    `request`, the parts have its group and transactional id too. Places are as in `error_answer`. Raises
    UnknownApi, NoPlace.
    """
    of = API[key_of(api)]
    error = _Error(of, version, code, _chosen(of, version, place, only), only)
    scope = {} if request is None else names_in(request, of, version)
    return error.edited(tree(of.key, version), response, scope)


def names_in(request: Values, api: Api, version: int) -> Values:
    """The names in the top level of a request, which hold for all its parts."""
    fields = tuple(f for f in api.request if version in f.versions and f.kind != "array")
    return {part: request[name] for name, part in names_of(fields).items() if name in request}


def _chosen(api: Api, version: int, at: Place | Path | None, only: Only | None) -> list[Place]:
    """The places meant: if none is given, such as the request names. Raises NoPlace."""
    every = places(api, version)
    if at is not None:
        path = at.path if isinstance(at, Place) else tuple(at)
        found = [place for place in every if place.path == path]
        if not found:
            reason = f"{api.name} v{version} has no {'.'.join(path)}; it has {', '.join(map(str, every))}"
            raise NoPlace(reason, edit=False)
        return found
    known = [p for p in every if p.asked and p.path[-1] not in ASIDE] or list(every)
    if only is not None:
        return [max(known, key=lambda p: len(p.path))]
    first = min(known, key=lambda p: len(p.path))
    versions = version_range(ALSO.get(api.name))
    return [p for p in known if p is first or version in versions]


class _Error:
    """A code at some places of one version of a response, in some of the parts."""

    def __init__(self, api: Api, version: int, code: int, at: list[Place], only: Only | None) -> None:
        self.name, self.version, self.code, self.places, self.only = api.name, version, code, at, only
        self.placed = 0  # how often

    def below(self, node: Node) -> list[Node]:
        """The arrays of a node on the way to a place."""
        return [n for n in node.inner if any(p.path[: len(n.path)] == n.path for p in self.places)]

    def codes(self, node: Node) -> list[str]:
        return [place.path[-1] for place in self.places if place.path[:-1] == node.path]

    def refused(self, node: Node, asked: Values, known: Values, scope: Values) -> Values:
        """The response, or an element of it, made from the request."""
        parts = {n.path[-1]: list(self._parts(n, asked, scope)) for n in self.below(node)}
        return self.failed(node, known) | parts

    def _parts(self, node: Node, asked: Values, scope: Values) -> Iterator[Values]:
        here, seen = bool(self.codes(node)), list[Values]()
        for source in node.sources:
            for element, part in elements(asked, source, scope):
                known = {name: part[told] for name, told in node.keys.items()}
                if here and self.only is not None and not self.only(part):
                    continue
                if len(node.sources) > 1 and known in seen:  # one user, deleted and inserted
                    continue
                seen.append(known)
                answer = self.refused(node, element, known, part)
                if self.only is None or here or any(answer[n.path[-1]] for n in self.below(node)):
                    yield answer

    def edited(self, node: Node, values: Values, scope: Values) -> Values:
        """The response, or an element of it, changed where this error is meant."""
        out, codes = values, self.codes(node)
        if codes and (self.only is None or self.only(scope)):
            kept = node.names.keys() | KEPT.get(self.name, set()) | {"throttle_time_ms"}
            aside = ASIDE.issuperset(codes)
            out = self.failed(node, {k: v for k, v in values.items() if aside or k in kept})
        for n in self.below(node):
            before = values[n.path[-1]] or []
            after = [self.edited(n, element, scope | n.part(element)) for element in before]
            if out is not values or any(a is not b for a, b in zip(after, before, strict=True)):
                out = out | {n.path[-1]: after}
        return out

    def failed(self, node: Node, known: Values) -> Values:
        """One element with its code, its known fields, and the rest as on any error."""
        values = {f.name: self._beside(f, known) for f in node.fields}
        for name in self.codes(node):
            self.placed += 1
            values[name] = self.code
            if self.name in SPEAKING and "error_message" in values:
                error = ERRORS.get(self.code)
                values["error_message"] = error.meaning if error is not None else None
        return values

    def _beside(self, f: Field, known: Values) -> Any:
        usual: Any = b"" if f.kind == "records" else default_of(f, self.version)
        usual = None if f.name.endswith("error_message") else usual
        value = known.get(f.name, BESIDE_ERROR.get(self.name, {}).get(f.name, usual))
        return default_of(f, self.version) if value is None and self.version not in f.null else value
