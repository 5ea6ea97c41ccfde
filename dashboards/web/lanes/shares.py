"""Share sessions (KIP-932): a lane for each member of a share group at each broker."""

from __future__ import annotations

from dataclasses import dataclass

from klamm.dashboards.web.lanes.marks import Board, Span, Track
from klamm.dashboards.web.lanes.recent import Recent
from klamm.dashboards.web.lanes.told import Told, Values, named_error
from klamm.dashboards.web.lanes.words import condition, counted, identity, seconds, short, shown

SHARERS = 20_000  # that are remembered
FINAL, FIRST = -1, 0  # session epochs: the end, and a new session
LOST = frozenset({"SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"})
TYPES = ("gaps", "accepted", "released", "rejected", "renewed")  # by acknowledge type


@dataclass(slots=True, eq=False)
class Sharer:
    """A member at a broker; the records that it acquired, and those it settled, in its session."""

    track: Track
    span: Span | None = None
    acquired: int = 0
    settled: int = 0
    seen: float = 0.0


class Shares:
    """Reads ShareFetch and ShareAcknowledge."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.sharers: Recent[str, Sharer] = Recent(SHARERS)

    def read(self, told: Told) -> None:
        request, fetches = told.request, told.one.api == "ShareFetch"
        sharer, epoch = self._sharer(told), request["share_session_epoch"]
        counts = _acknowledged(request)
        acquired, again = _acquired(told.response or {})
        error = told.error or _part_error(told.response or {})
        words = f"{'share fetch' if fetches else 'acknowledgement'}, epoch {epoch}"
        words = words.replace("epoch -1", "the last of its session").replace("epoch 0", "for a new session")
        words += "".join(f"; {number:,} {TYPES[kind]}" for kind, number in counts.items())
        if fetches and told.response is not None:
            words += f"; acquired {counted(acquired, 'record')}"
            words += f", {again:,} of them not for the first time" if again else ""
        words += "" if told.response is not None else "; no answer"
        if error:
            words += f": {error}"
        if told.error in LOST and sharer.seen:
            words += f", {seconds(max(0.0, told.begin - sharer.seen))} after the last request of the session"
        kind = "acquired" if acquired else "fetched" if fetches else "acknowledged"
        kind = "lost" if told.error in LOST else kind
        number = epoch if epoch > FINAL else None
        self.board.mark(sharer.track, kind, told.begin, told.end, words, told.key, error, number)
        self._session(sharer, told, epoch, acquired, sum(counts.values()))

    def forget(self) -> None:
        """Nobody looked for a while: sessions may have ended, and others may have begun."""
        for one in self.sharers.kept.values():
            one.span, one.acquired, one.settled, one.seen = None, 0, 0, 0.0

    def _session(self, sharer: Sharer, told: Told, epoch: int, acquired: int, settled: int) -> None:
        if epoch == FIRST:
            self._over(sharer, told.end, "replaced by another", "")
        if not told.error:
            sharer.acquired += acquired
            sharer.settled += settled
        if told.error in LOST or epoch == FINAL:
            self._over(sharer, told.end, told.error or "closed by its member", told.error)
        elif not told.error and told.response is not None:
            sharer.seen = told.end
            if sharer.span is None:
                words = f"share session at broker {told.one.broker}"
                sharer.span = self.board.began(sharer.track, "session", told.begin, told.end, words, told.key)

    def _over(self, sharer: Sharer, at: float, how: str, error: str) -> None:
        if sharer.span is not None:
            done = f"{counted(sharer.acquired, 'record')} acquired, {sharer.settled:,} acknowledged"
            self.board.ended(sharer.span, at, text=f"{sharer.span.mark.text}, {how}; {done}", error=error)
        sharer.span, sharer.acquired, sharer.settled = None, 0, 0

    def _sharer(self, told: Told) -> Sharer:
        one, group, member = told.one, told.request["group_id"] or "", told.request["member_id"] or ""
        header = f"{one.cluster}/share/{identity(group)}"
        lane = f"{one.broker}/{identity(member)}"
        sharer = self.sharers.made(f"{header}/{lane}", lambda: Sharer(Track(header, lane)))
        where = condition(group=group)
        self.board.header(header, shown(group), {"cluster": one.cluster, "protocol": "share"}, where)
        about = {
            "member id": shown(member, 200), "client id": shown(one.client_id or ""), "host": told.host,
            "broker": one.broker,
        }  # fmt: skip
        of_member = condition(group=group, member_id=member, broker=one.broker)
        self.board.lane(sharer.track, f"broker {one.broker} · {short(member)}", about, of_member)
        return sharer


def _acknowledged(request: Values) -> dict[int, int]:
    """How many records have each acknowledge type."""
    counts: dict[int, int] = {}
    for topic in request["topics"]:
        for part in topic["partitions"]:
            for batch in part["acknowledgement_batches"]:
                types, size = batch["acknowledge_types"], batch["last_offset"] - batch["first_offset"] + 1
                for kind in types:
                    number = size if len(types) == 1 else 1
                    if 0 <= kind < len(TYPES) and number > 0:
                        counts[kind] = counts.get(kind, 0) + number
    return dict(sorted(counts.items()))


def _acquired(answer: Values) -> tuple[int, int]:
    """Records that an answer gives, and those of them that were given before."""
    ranges = [
        (max(0, one["last_offset"] - one["first_offset"] + 1), one["delivery_count"])
        for topic in answer.get("responses", ())
        for part in topic["partitions"]
        for one in part.get("acquired_records") or ()
    ]
    return sum(size for size, _ in ranges), sum(size for size, count in ranges if count > 1)


def _part_error(answer: Values) -> str:
    """The first error of a partition, "" for none."""
    for topic in answer.get("responses", ()):
        for part in topic["partitions"]:
            if code := part["error_code"] or part.get("acknowledge_error_code", 0):
                return named_error(code)
    return ""
