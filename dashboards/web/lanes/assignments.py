"""Reads the assignments of group members, and compares each with the one before."""

from __future__ import annotations

from klamm.dashboards.web.lanes.members import Member
from klamm.dashboards.web.lanes.told import Values
from klamm.dashboards.web.lanes.topics import Listed
from klamm.dashboards.web.lanes.words import identity, partitions, shown
from klamm.decoders.payloads import group_payload

MOST = 10_000  # partitions that are remembered of a member
TASKS = {"active_tasks": "", "standby_tasks": "standby ", "warmup_tasks": "warmup "}


def of_classic(kind: str, assignment: bytes) -> Listed | None:
    """Reads the assignment in a SyncGroup response: topics, or the connectors of Connect. None where it is of
    another kind, or cannot be read.
    """
    found = group_payload(kind, "assignment", assignment)
    if found is None:
        return {} if not assignment else None
    if "assigned_partitions" in found.values:
        return {identity(one["topic"]): one["partitions"] for one in found.values["assigned_partitions"]}
    if "assignment" in found.values:
        return {identity(one["connector"]): one["tasks"] for one in found.values["assignment"] or ()}
    return None


def of_tasks(answer: Values) -> Listed | None:
    """Reads the subtopologies that a response assigns to a member of a Streams group. None for no change."""
    if all(answer.get(kind) is None for kind in TASKS):
        return None
    return {
        f"{words}{identity(one['subtopology_id'])}": one["partitions"]
        for kind, words in TASKS.items()
        for one in answer.get(kind) or ()
    }


def moved(member: Member, now: Listed | None) -> str:
    """Keeps what the member has now. Tells it, and what it gained and lost."""
    before, member.assigned, member.has = member.assigned, None, ""
    if now is None:
        return "an assignment of its own kind"
    if sum(map(len, now.values())) <= MOST:
        member.assigned = now
    member.has = partitions(now)
    words = f"assigned {member.has}"
    if before is None or member.assigned is None:
        return words
    for name, more, less in (("new", now, before), ("gone", before, now)):
        if other := _without(more, less):
            words += f"; {name}: {partitions(other)}"
    return words


def committed(topics: list[Values], names: list[str]) -> str:
    """Offsets, for people: the first partitions of the first topics."""
    parts = []
    for name, topic in zip(names, topics, strict=True):
        told = [f"[{one['partition_index']}] at {one['committed_offset']}" for one in topic["partitions"][:6]]
        left = len(topic["partitions"]) - len(told)
        parts.append(f"{shown(name)} {', '.join(told)}{f' and {left} more' if left else ''}")
    return "; ".join(parts[:6]) + (f" and {len(parts) - 6} more topics" if len(parts) > 6 else "")


def _without(one: Listed, other: Listed) -> Listed:
    found = {}
    for topic, parts in one.items():
        if left := sorted(set(parts) - set(other.get(topic, ()))):
            found[topic] = left
    return found
