"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from typing import Any

from klamm.dashboards.web.lanes import rebalances
from klamm.dashboards.web.lanes.assignments import moved, of_classic
from klamm.dashboards.web.lanes.members import CLASSIC, Group, Member, Membership
from klamm.dashboards.web.lanes.rebalances import REBALANCE
from klamm.dashboards.web.lanes.told import Told, Values, named_error
from klamm.dashboards.web.lanes.words import counted, identity, listed, setting, shown
from klamm.decoders.payloads import group_payload

INVITED = "MEMBER_ID_REQUIRED"


class Classic:
    """Reads the exchanges of classic groups."""

    def __init__(self, known: Membership) -> None:
        self.known, self.board = known, known.board

    def join(self, told: Told) -> None:
        request, answer = told.request, told.response or {}
        group = self.known.group(told, request["group_id"], CLASSIC)
        was = request["member_id"]
        member = self.known.member(group, told, was, answer.get("member_id") or "")
        subscribed = self._noted(member, request)
        details = _sent(request, subscribed)
        if told.response is None:
            words = f"join: no answer; {details}"
            self.board.mark(member.track, "join", told.begin, told.end, words, told.key)
        elif told.error == INVITED:
            member.invited = True
            words = f"join: got the member id to join with ({INVITED})"
            self.board.mark(member.track, "join", told.begin, told.end, words, told.key)
        elif told.error:
            rebalances.refused(self.board, member, told, told.error, "join", f"join with {details}")
        else:
            self._joined(member, told, not was or member.invited or bool(member.gone), subscribed, details)

    def _joined(self, member: Member, told: Told, new: bool, subscribed: str | None, details: str) -> None:
        request, answer = told.request, told.response or {}
        group, epoch = member.group, answer["generation_id"]
        old = group.holder(member.instance, member)
        changed = member.subscribed is not None and subscribed != member.subscribed
        why = _why(member, request, new, old, f"now subscribes to {subscribed}" if changed else "")
        if old is not None and not old.gone:
            taken = f"{member.name} took over its instance id {shown(member.instance)}"
            rebalances.put_out(self.board, old, told.end, taken, told.key)
        if epoch > group.epoch:
            rebalances.begin(self.board, group, epoch, told)
        shared = group.span is not None and epoch == group.epoch and told.begin <= group.span.mark.end
        member.shares = shared
        if why and shared:
            rebalances.cause(group.causes, told.begin, why)
        leads = identity(answer["leader"]) == member.id
        words = f"joined generation {epoch}{' as its leader' if leads else ''}"
        words += f", with {shown(answer['protocol_name'])}" if answer.get("protocol_name") else ""
        self.board.mark(
            member.track, "join", told.begin, told.end, f"{words}; {details}", told.key, "", epoch
        )
        member.subscribed = subscribed
        rebalances.enter(self.board, member, epoch, told.begin, told)
        if leads and answer["members"] and epoch == group.epoch:
            group.size = len(answer["members"])
            present = frozenset(identity(one["member_id"]) for one in answer["members"])
            rebalances.without(self.board, group, present, told)
        if shared:
            rebalances.tell(self.board, group, told.end)

    def sync(self, told: Told) -> None:
        request, answer = told.request, told.response
        member, group = self._member(told)
        self.known.describe(member, **_instance(member, request))
        if answer is None or told.error:
            self._failed(member, told, "assignment", "sync")
            return
        kind = answer.get("protocol_type") or request.get("protocol_type") or member.about.get("type", "")
        if request["generation_id"] == group.epoch and not group.checked:
            rebalances.without(self.board, group, frozenset({member.id}), told)
        rebalances.enter(self.board, member, request["generation_id"], told.begin, told)
        words = moved(member, of_classic(kind, answer["assignment"]))
        if request["assignments"]:
            words += f"; it has assigned to {counted(len(request['assignments']), 'member')}"
        self.board.mark(
            member.track, "assignment", told.begin, told.end, words, told.key, "", request["generation_id"]
        )
        if member.shares:
            member.shares = False
            rebalances.tell(self.board, group, told.end)

    def heartbeat(self, told: Told) -> None:
        member, _ = self._member(told)
        if told.response is None or told.error:
            self._failed(member, told, "heartbeat", "heartbeat")
            return
        epoch = told.request["generation_id"]
        rebalances.enter(self.board, member, epoch, told.begin, told)
        self.board.mark(member.track, "heartbeat", told.begin, told.end, "heartbeat", told.key, "", epoch)

    def leave(self, told: Told) -> None:
        request, answer = told.request, told.response or {}
        group = self.known.group(told, request["group_id"], CLASSIC)
        asked = request.get("members") or [{"member_id": request.get("member_id", "")}]
        answers = {_names(one): one["error_code"] for one in answer.get("members", ())}
        for one in asked:
            named, instance = one["member_id"], identity(one.get("group_instance_id") or "")
            holder = None if named else group.holder(instance)
            member = holder or self.known.found(group, named) or self.known.member(group, told, named)
            error = named_error(answers.get(_names(one), 0)) or told.error
            self._leaves(member, told, one.get("reason") or "", error)

    def _leaves(self, member: Member, told: Told, reason: str, error: str) -> None:
        words = "left"
        if told.one.connection_id not in member.connections:
            words = f"was removed by {shown(told.one.client_id or 'a client')} at {told.host}"
        words += f": {shown(reason, 200)}" if reason else ""
        if error:
            rebalances.refused(self.board, member, told, error, "leave", words)
            return
        rebalances.left(self.board, member, told, words)

    def _member(self, told: Told) -> tuple[Member, Group]:
        group = self.known.group(told, told.request["group_id"], CLASSIC)
        return self.known.member(group, told, told.request["member_id"]), group

    def _failed(self, member: Member, told: Told, kind: str, words: str) -> None:
        if told.response is None:
            self.board.mark(member.track, kind, told.begin, told.end, f"{words}: no answer", told.key)
        elif told.error == REBALANCE:
            rebalances.asked_again(self.board, member, told, words)
        else:
            rebalances.refused(self.board, member, told, told.error, kind, words)

    def _noted(self, member: Member, request: Values) -> str | None:
        """Keeps what a join tells of its member. Gives the topics that it subscribes to."""
        member.session_ms = request["session_timeout_ms"]
        rebalance_ms = request.get("rebalance_timeout_ms", -1)
        member.rebalance_ms = rebalance_ms if rebalance_ms > 0 else member.session_ms
        values: Values = {}
        for protocol in request["protocols"][:1]:
            found = group_payload(request["protocol_type"], "metadata", protocol["metadata"])
            values = {} if found is None else found.values
        facts = {"rack": shown(values.get("rack_id") or ""), "type": shown(request["protocol_type"])}
        self.known.describe(member, **facts, **_instance(member, request))
        topics = values.get("topics")
        return None if topics is None else listed([shown(one) for one in sorted(topics)], 6)


def _why(member: Member, request: Values, new: bool, old: Member | None, changes: str) -> str:
    """Why a join sets off a rebalance; "" for that of a member that was asked to join again."""
    if new and old is not None:
        return f"{member.name} took over the instance id {shown(member.instance)} of {old.name}"
    if new:
        return f"{member.name} joined"
    if member.asked is not None or member.epoch < 0 or member.epoch != member.group.epoch:
        return ""
    reason = changes or shown(request.get("reason") or "", 200)
    return f"{member.name} joined again{f': {reason}' if reason else ''}"


def _instance(member: Member, request: Values) -> dict[str, str]:
    member.instance = identity(request.get("group_instance_id") or "") or member.instance
    return {"instance id": shown(member.instance)}


def _sent(request: Values, subscribed: str | None) -> str:
    """The settings in a JoinGroup request, as text."""
    parts = [f"session.timeout.ms {setting(request['session_timeout_ms'])}"]
    if subscribed is not None:
        parts.insert(0, f"subscribes to {subscribed or 'nothing'}")
    if request["protocols"]:
        parts.append(f"protocols {listed([shown(one['name']) for one in request['protocols']])}")
    if request.get("group_instance_id"):
        parts.append(f"instance id {shown(request['group_instance_id'])}")
    if request.get("reason"):
        parts.append(f"reason: {shown(request['reason'], 200)}")
    return "; ".join(parts)


def _names(one: Values) -> tuple[Any, Any]:
    return one["member_id"], one.get("group_instance_id")
