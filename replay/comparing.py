"""Compares answers with the recorded ones, and keeps the differences that matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from klamm.decoders.error_codes import ERRORS, error_name
from klamm.decoders.records import MissingCodec, RecordsError, batches, records
from klamm.decoders.schema import ERROR, RECORDS, Api, members
from klamm.replay.meanings import is_compared, meaning, means_nothing
from klamm.replay.pairs import ABSENT, Pair

NONE, AN_ID, NULL = "none", "an id", "null"
LONGEST = 60  # characters of a value
ASSIGNMENT = "assignment"

# Errors of a cluster that has not come as far as the recorded one, or whose leaders moved: clients ask again.
NOT_YET = frozenset(
    ERRORS[name].code
    for name in (
        "UNKNOWN_SERVER_ERROR", "OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR", "NOT_ENOUGH_REPLICAS", "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "CONCURRENT_TRANSACTIONS", "FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH",
        "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "UNSTABLE_OFFSET_COMMIT",
        "UNKNOWN_TOPIC_ID", "FETCH_SESSION_TOPIC_ID_ERROR", "SHARE_SESSION_NOT_FOUND",
        "INVALID_SHARE_SESSION_EPOCH",
    )
)  # fmt: skip
# Retriable errors of these: clients wait for them to pass, so it is no difference if they do not occur now.
PASSING = frozenset(error.code for error in ERRORS if error.retriable and error.code in NOT_YET)
GOING_ON = PASSING | {0, ERRORS["MEMBER_ID_REQUIRED"].code}

Both = tuple[str, str]  # recorded, now


@dataclass(slots=True)
class Difference:
    """A difference at one place of the answers of one API: how often it was seen, and its first example."""

    api: str
    path: str
    recorded: str
    now: str
    version: int
    connection: int
    exchange: int
    count: int = 1


class Differences:
    """`with_offsets`: compare them too. `passed`: (API, error) -> how often the recording made a client ask
    again and this cluster did not, which is no difference.
    """

    def __init__(self, with_offsets: bool = False) -> None:
        self.with_offsets = with_offsets
        self.passed: Counter[tuple[str, str]] = Counter()
        self.found: dict[tuple[str, str], Difference] = {}

    def add(self, api: str, version: int, path: str, values: Both, connection: int, exchange: int) -> None:
        known = self.found.get((api, path))
        if known is not None:
            known.count += 1
        else:
            self.found[api, path] = Difference(api, path, *values, version, connection, exchange)

    def compare(
        self, api: Api, version: int, found: Iterable[Pair], connection: int, exchange: int, blank: bool
    ) -> None:
        """`blank`: the recorded records are not there to be compared. Where an error differs, the fields
        beside it follow from it, and are not listed.
        """
        found = list(found)
        failed = {id(pair.beside) for pair in found if pair.field.mark == ERROR and different(pair)}
        for pair in found:
            values = different(pair, self.with_offsets, blank)
            if values is None or (pair.field.mark != ERROR and id(pair.beside) in failed):
                continue
            if pair.field.mark == ERROR and pair.recorded in PASSING and pair.now in GOING_ON:
                self.passed[api.name, values[0]] += 1
            else:
                self.add(api.name, version, pair.path, values, connection, exchange)


def different(pair: Pair, with_offsets: bool = False, blank: bool = False) -> Both | None:
    """The two values as text, if they differ where they should not."""
    f, recorded, now = pair.field, pair.recorded, pair.now
    if not is_compared(f, with_offsets):
        return None
    if f.mark == RECORDS:
        return None if blank else _of_records(recorded, now)
    if recorded == now or (not recorded and not now and f.kind in ("array", "string", "bytes")):
        return None
    if f.mark == ERROR:
        return error_name(recorded or 0), error_name(now or 0)
    kind = meaning(f)
    if kind in ("node", "leader_epoch") or (kind is not None and f.kind == "array"):
        return None
    if kind is not None:
        both = tuple(NONE if means_nothing(kind, value) else AN_ID for value in (recorded, now))
        return (both[0], both[1]) if both[0] != both[1] else None
    if is_assignment(pair) and pair.recorded in (None, ABSENT):
        return None
    return _text(recorded), _text(now)


def is_assignment(pair: Pair) -> bool:
    """Whether it is about the partitions that a heartbeat's answer brings. They come with this answer or a
    later one, and once (KIP-848).
    """
    return pair.path.startswith(ASSIGNMENT) and bool(members(pair.field))


def _of_records(recorded: bytes | None, now: bytes | None) -> Both | None:
    """Fewer of them than there were, or others. More are no difference: a fetch takes what is there."""
    if not recorded:
        return None
    if now is not None and recorded == now:
        return None
    try:
        before, after = dict(_contents(recorded)), dict(_contents(now or b""))
    except (RecordsError, MissingCodec):
        return None
    if before and after and min(before) != min(after):  # at other offsets: in their order
        before, after = dict(enumerate(before.values())), dict(enumerate(after.values()))
    for place, content in before.items():
        if place in after and after[place] != content:
            return f"a record {_record_text(content)}", _record_text(after[place])
    if len(before.keys() - after.keys()) > 0:
        return f"{len(before)} records", f"{len(before.keys() & after.keys())} of them"
    return None


def _contents(data: bytes) -> Iterator[tuple[int, tuple[Any, ...]]]:
    for batch in batches(data):
        if not batch.is_control:
            for record in records(batch):
                yield record.offset, (record.key, record.value, record.headers)


def count_records(data: bytes | None) -> int:
    """The number of records, by the headers: a compressed message of an old format counts as one."""
    if not data:
        return 0
    try:
        return sum(max(batch.record_count, 1) for batch in batches(data) if not batch.is_control)
    except RecordsError:
        return 0


def _record_text(content: tuple[Any, ...]) -> str:
    key, value, _ = content
    return f"key {_size(key)}, value {_size(value)}"


def _size(data: bytes | None) -> str:
    return NULL if data is None else f"{len(data)} bytes"


def _text(value: Any) -> str:
    text = NULL if value is None else value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
