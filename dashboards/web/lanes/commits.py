"""Offsets that members commit, in transactions and without."""

from __future__ import annotations

from klamm.dashboards.web.lanes import rebalances
from klamm.dashboards.web.lanes.assignments import committed
from klamm.dashboards.web.lanes.members import CLASSIC, Membership
from klamm.dashboards.web.lanes.rebalances import REBALANCE
from klamm.dashboards.web.lanes.told import Told, named_error
from klamm.dashboards.web.lanes.words import shown


class Commits:
    """Reads OffsetCommit and TxnOffsetCommit."""

    def __init__(self, known: Membership) -> None:
        self.known, self.board = known, known.board

    def read(self, told: Told) -> None:
        request = told.request
        self.known.topics.learn(told)
        seen = self.known.groups.get(self.known.key(told, request["group_id"]))
        group = self.known.group(told, request["group_id"], CLASSIC if seen is None else seen.protocol)
        member = self.known.member(group, told, request.get("member_id") or "")
        words = f"committed {offsets(told, self.known)}"
        if request.get("transactional_id"):
            words += f", in a transaction of {shown(request['transactional_id'])}"
        error = first_error(told)
        if told.response is None:
            words = f"commit: no answer; {words}"
        elif error == REBALANCE:
            rebalances.asked_again(self.board, member, told, words.replace("committed", "commit of", 1))
            return
        elif error:
            words = words.replace("committed", "commit of", 1)
            rebalances.refused(self.board, member, told, error, "commit", words)
            return
        elif member.id and group.protocol == CLASSIC:
            rebalances.alive(member, told)
        if told.response is not None:
            member.committed(self.known.topics.listed(request["topics"]))
        epoch = request.get("generation_id_or_member_epoch", -1)
        shown_epoch = None if epoch < 0 else epoch
        self.board.mark(member.track, "commit", told.begin, told.end, words, told.key, "", shown_epoch)


def offsets(told: Told, known: Membership) -> str:
    """The offsets of a commit, for people."""
    topics = told.request["topics"]
    return committed(topics, [known.topics.name(one) for one in topics])


def first_error(told: Told) -> str:
    """The first error of a partition, by its name; "" for none."""
    topics = (told.response or {}).get("topics", ())
    codes = (one["error_code"] for topic in topics for one in topic["partitions"])
    return named_error(next((code for code in codes if code), 0))
