"""Rules of all kinds of groups: who is in, who is out and why, and what set off a rebalance."""

from __future__ import annotations

from klamm.dashboards.web.lanes.marks import Board
from klamm.dashboards.web.lanes.members import CLASSIC, Cause, Group, Member
from klamm.dashboards.web.lanes.told import Told
from klamm.dashboards.web.lanes.words import counted, listed, seconds, setting, shown

SESSION_MS = 45_000  # default of the brokers' session timeouts for members that send none
NEARLY = 0.95  # of a timeout: the coordinator's clock starts before the answer is here
CAUSES = 50  # that are remembered of a rebalance
TOLD = 4  # of them in a text
REBALANCE = "REBALANCE_IN_PROGRESS"
OUT = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH"})
UNSEEN = "nothing that was seen tells why"


def alive(member: Member, told: Told) -> None:
    """The coordinator took it for a sign of life."""
    member.seen, member.gone = told.end, ""


def enter(board: Board, member: Member, epoch: int, begin: float, told: Told) -> None:
    """The member is in this generation or epoch from now on."""
    alive(member, told)
    member.asked, member.invited = None, False
    if epoch == member.epoch and member.span is not None:
        return
    _end(board, member, begin)
    member.group.changed.append(member)
    member.group.entered += epoch == member.group.epoch != member.epoch
    member.epoch, member.commits = epoch, {}
    text = f"{member.group.noun} {epoch}"
    member.span = board.began(member.track, "epoch", told.end, told.end, text, told.key, epoch)


def leave(board: Board, member: Member, at: float, why: str) -> None:
    """It is no member any more, as it wished or was told."""
    _end(board, member, at)
    member.gone, member.epoch, member.asked = why, -1, None
    member.group.changed.append(member)


def left(board: Board, member: Member, told: Told, words: str) -> None:
    """It said that it goes, or another said so. The last one leaves an empty group."""
    group = member.group
    board.mark(member.track, "leave", told.begin, told.end, words, told.key)
    leave(board, member, told.end, words)
    cause(group.pending, told.begin, f"{member.name} {words}")
    if not any(group.present()):
        group.pending = []
        words = f"empty: {member.name} {words}, the last member that was seen"
        board.mark(group.track, "empty", told.end, told.end, words, told.key)


def put_out(board: Board, member: Member, at: float, why: str, key: str) -> None:
    """Another has ended its membership."""
    leave(board, member, at, why)
    board.mark(member.track, "out", at, at, f"out: {why}", key)


def refused(board: Board, member: Member, told: Told, error: str, kind: str, words: str) -> None:
    """A mark with an error; one that says that it is no member explains why."""
    text = f"{words}: {error}"
    if error in OUT and _epoch(told) < member.epoch:
        text += f", for it was of an earlier {member.group.noun}"
    elif error in OUT:
        if not member.gone:
            at, why = _explained(member, told, error)
            put_out(board, member, at, why, told.key)
            if at < told.begin:  # the group has noticed it before
                cause(member.group.pending, at, f"{member.name}: {why}")
        text += f": {member.gone}"
    board.mark(member.track, kind, told.begin, told.end, text, told.key, error)


def asked_again(board: Board, member: Member, told: Told, words: str) -> None:
    """It is told to join again."""
    alive(member, told)
    member.asked = told.end if member.asked is None else member.asked
    text = f"{words}: {REBALANCE}, the member is to join again"
    board.mark(member.track, "asked", told.begin, told.end, text, told.key)


def begin(board: Board, group: Group, epoch: int, told: Told) -> None:
    """A generation or epoch that was not seen before. What came since the last one set it off."""
    asked = [one.asked for one in group.present() if one.asked is not None]
    group.causes, group.pending = group.pending, []
    group.epoch, group.size, group.entered = epoch, 0, 0
    group.checked, group.followed = False, bool(asked)
    since = min([told.begin if group.protocol == CLASSIC else told.end, *asked, *_times(group)])
    group.span = board.began(group.track, "rebalance", since, told.end, "", told.key, epoch)


def tell(board: Board, group: Group, until: float) -> None:
    """The newest rebalance, as it is known now."""
    if group.span is None:
        return
    since = min([group.span.mark.begin, *_times(group)])
    until = max(until, group.span.mark.end)
    causes = [cause.text for cause in sorted(group.causes)]
    told = f"{group.noun} {group.epoch}: {listed(causes, TOLD) or UNSEEN}; "
    told += f"{counted(group.size or group.entered, 'member')} after {seconds(until - since)}"
    group.span = board.changed(group.span, begin=since, end=until, text=told, open=False)


def cause(causes: list[Cause], time: float, text: str) -> None:
    """One more, unless it is known already."""
    if len(causes) < CAUSES and all(one.text != text for one in causes):
        causes.append(Cause(time, text))


def without(board: Board, group: Group, present: frozenset[str], told: Told) -> None:
    """Marks as out the members that did not leave, and are missing in the newest generation."""
    group.checked = True
    for member in list(group.present()):
        if member.epoch < group.epoch and member.id not in present and member.epoch >= 0:
            at, why = _silent(member, told)
            if group.followed:
                cause(group.causes, at, f"{member.name}: {why}")
            put_out(board, member, at, why, told.key)


def overdue(board: Board, group: Group, told: Told, setting_name: str) -> None:
    """Members that have been silent for longer than the brokers' default; they do not tell the setting."""
    for member in list(group.present()):
        silent = told.end - member.seen
        if member.seen and silent * 1000 >= SESSION_MS * NEARLY:
            at = member.seen + SESSION_MS / 1000
            why = _no_heartbeat(silent, f"the default of {setting_name}", SESSION_MS)
            if any(one.seen >= at and one.epoch >= 0 for one in group.present()):
                cause(group.causes, at, f"{member.name}: {why}")
            put_out(board, member, at, why, told.key)


def _end(board: Board, member: Member, at: float) -> None:
    if member.span is not None:
        board.ended(member.span, at)
        member.span = None


def _epoch(told: Told) -> int:
    """The generation or epoch that a request tells; a large number for none."""
    request = told.request
    names = ("generation_id", "generation_id_or_member_epoch")
    return next((request[name] for name in names if request.get(name, -1) >= 0), 1 << 31)


def _times(group: Group) -> list[float]:
    return [one.time for one in group.causes]


def _no_heartbeat(silent: float, name: str, limit_ms: int) -> str:
    return f"no heartbeat for {seconds(silent)}, {name} is {setting(limit_ms)}"


def _silent(member: Member, told: Told) -> tuple[float, str]:
    """When and why a member that did not join again was given up."""
    span = member.group.span
    until = told.end if span is None else span.mark.end if span.mark.end > span.mark.begin else told.end
    if member.asked is not None and (until - member.asked) * 1000 >= member.rebalance_ms * NEARLY > 0:
        why = f"it did not join again within its rebalance timeout of {setting(member.rebalance_ms)}"
        return member.asked + member.rebalance_ms / 1000, why
    if (until - member.seen) * 1000 >= member.session_ms * NEARLY > 0:
        at = member.seen + member.session_ms / 1000
        since = until if span is None else max(span.mark.begin, at)
        return at, _no_heartbeat(since - member.seen, "session.timeout.ms", member.session_ms)
    return until, f"it is not in generation {member.group.epoch}; {UNSEEN}"


def _explained(member: Member, told: Told, error: str) -> tuple[float, str]:
    """When and why the coordinator knows the member no more."""
    group, silent = member.group, told.begin - member.seen
    if error == "FENCED_INSTANCE_ID":
        other = group.holder(member.instance, member)
        by = f"{other.name} took over" if other is not None else "another member took over"
        return told.end, f"{by} its instance id {shown(member.instance)}"
    if error == "ILLEGAL_GENERATION" and group.epoch > member.epoch >= 0:
        return told.end, f"the group is at generation {group.epoch}, the member at {member.epoch}"
    limit = member.session_ms or (0 if group.protocol == CLASSIC else SESSION_MS)
    if member.seen and silent * 1000 >= limit * NEARLY > 0:
        name = "session.timeout.ms" if member.session_ms else "the default of the session timeout"
        return member.seen + limit / 1000, _no_heartbeat(silent, name, limit)
    if member.asked is not None and (told.begin - member.asked) * 1000 >= member.rebalance_ms * NEARLY > 0:
        return _silent(member, told)
    return told.end, UNSEEN
