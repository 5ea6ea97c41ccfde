"""Groups that need heartbeats only: of consumers (KIP-848), of share consumers (KIP-932), of Streams
(KIP-1071).
"""

from __future__ import annotations

from klamm.dashboards.web.lanes import rebalances
from klamm.dashboards.web.lanes.assignments import moved, of_tasks
from klamm.dashboards.web.lanes.members import CONSUMER, SHARE, STREAMS, Member, Membership
from klamm.dashboards.web.lanes.told import Told, Values
from klamm.dashboards.web.lanes.topics import Listed
from klamm.dashboards.web.lanes.words import identity, listed, setting, shown

JOINS, LEAVES, LEAVES_FOR_NOW = 0, -1, -2  # epochs that a member sends
PROTOCOLS = {
    "ConsumerGroupHeartbeat": CONSUMER, "ShareGroupHeartbeat": SHARE, "StreamsGroupHeartbeat": STREAMS,
}  # fmt: skip


class Heartbeats:
    """Reads the heartbeats of these groups."""

    def __init__(self, known: Membership) -> None:
        self.known, self.board = known, known.board

    def read(self, told: Told) -> None:
        request, answer = told.request, told.response
        self.known.topics.learn(told)
        group = self.known.group(told, request["group_id"], PROTOCOLS[told.one.api])
        named = (answer or {}).get("member_id") or ""
        member = self.known.member(group, told, request["member_id"], named)
        sent = request["member_epoch"]
        words = self._noted(member, told)
        name = {JOINS: "join", LEAVES: "leave", LEAVES_FOR_NOW: "leave"}.get(sent, "heartbeat")
        if answer is None:
            self.board.mark(member.track, name, told.begin, told.end, f"{name}: no answer", told.key)
        elif told.error:
            self._refused(member, told, name, words)
        elif name == "leave":
            self._leaves(member, told)
        else:
            self._goes_on(member, told, name, words)

    def _goes_on(self, member: Member, told: Told, name: str, words: str) -> None:
        answer = told.response or {}
        group, epoch = member.group, answer["member_epoch"]
        if name == "join":
            rebalances.cause(group.pending, told.begin, f"{member.name} joined")
        elif words.startswith("now") and member.epoch >= 0:
            rebalances.cause(group.pending, told.begin, f"{member.name} {words}")
        rebalances.alive(member, told)
        if epoch > group.epoch:
            setting_name = f"group.{group.protocol}.session.timeout.ms"
            rebalances.begin(self.board, group, epoch, told)
            rebalances.overdue(self.board, group, told, setting_name)
        new = epoch != member.epoch
        rebalances.enter(self.board, member, epoch, told.begin, told)
        text = f"joined; epoch {epoch}" if name == "join" else "heartbeat"
        text = "; ".join(part for part in (text, words, _status(answer)) if part)
        self.board.mark(member.track, name, told.begin, told.end, text, told.key, "", epoch)
        self._assigned(member, told)
        if new and epoch == group.epoch:
            rebalances.tell(self.board, group, told.end)

    def _assigned(self, member: Member, told: Told) -> None:
        answer = told.response or {}
        found: Listed | None = None
        if told.one.api == "StreamsGroupHeartbeat":
            found = of_tasks(answer)
        elif answer.get("assignment") is not None:
            found = self.known.topics.listed(answer["assignment"]["topic_partitions"])
        if found is not None and found != member.assigned:
            words = moved(member, found)
            self.board.mark(
                member.track, "assignment", told.end, told.end, words, told.key, "", answer["member_epoch"]
            )

    def _leaves(self, member: Member, told: Told) -> None:
        for_now = told.request["member_epoch"] == LEAVES_FOR_NOW
        words = "left for now, and keeps its partitions by its instance id" if for_now else "left"
        rebalances.left(self.board, member, told, words)

    def _refused(self, member: Member, told: Told, name: str, words: str) -> None:
        answer = told.response or {}
        text = f"{name} with {words}" if words else name
        if told.error == "UNRELEASED_INSTANCE_ID":
            other = member.group.holder(member.instance, member)
            by = other.name if other else "another member"
            text += f", while {by} has the instance id {shown(member.instance)}"
        rebalances.refused(self.board, member, told, told.error, name, text)
        if answer.get("error_message"):
            self.known.describe(member, **{"last refusal": shown(answer["error_message"], 300)})

    def _noted(self, member: Member, told: Told) -> str:
        """Keeps what the request tells of its member. Gives what is new in it, for people."""
        request = told.request
        member.instance = identity(request.get("instance_id") or "") or member.instance
        facts = {"instance id": shown(member.instance)}
        if request.get("rack_id"):
            facts["rack"] = shown(request["rack_id"])
        self.known.describe(member, **facts)
        if request.get("rebalance_timeout_ms", -1) > 0:
            member.rebalance_ms = request["rebalance_timeout_ms"]
        subscribed = _subscribed(request)
        if subscribed is None or subscribed == member.subscribed:
            return ""
        joins = request["member_epoch"] == JOINS
        first, member.subscribed = member.subscribed is None, subscribed
        words = f"subscribes to {subscribed}" if joins or first else f"now subscribes to {subscribed}"
        return f"{words}; {details}" if (details := _sent(request)) and joins else words


def _subscribed(request: Values) -> str | None:
    """The topics that a request asks for; None where it asks for the same as before."""
    names, regex = request.get("subscribed_topic_names"), request.get("subscribed_topic_regex")
    topology = request.get("topology")
    if topology is not None:
        names = [name for part in topology["subtopologies"] for name in part["source_topics"]]
    if names is None and not regex:
        return None
    told = [shown(name) for name in sorted(set(names or ()))] + ([f"/{shown(regex)}/"] if regex else [])
    return listed(told, 6) or "nothing"


def _sent(request: Values) -> str:
    """The other settings in a join, as text."""
    parts = []
    if request.get("rebalance_timeout_ms", -1) > 0:
        parts.append(f"rebalance timeout {setting(request['rebalance_timeout_ms'])}")
    for field, name in (("server_assignor", "assignor"), ("instance_id", "instance id"), ("rack_id", "rack")):
        if request.get(field):
            parts.append(f"{name} {shown(request[field])}")
    return "; ".join(parts)


def _status(answer: Values) -> str:
    """The status codes in a response of a Streams group's coordinator, as text."""
    codes = [str(one["status_code"]) for one in answer.get("status") or ()]
    return f"status {listed(codes)}" if codes else ""
