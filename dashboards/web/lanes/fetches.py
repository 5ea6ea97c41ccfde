"""Fetch sessions (KIP-227): a lane for each fetcher, which is a client at a broker."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from klamm.dashboards.web.lanes.marks import Board, Span, Track
from klamm.dashboards.web.lanes.recent import Recent
from klamm.dashboards.web.lanes.told import Told, Values
from klamm.dashboards.web.lanes.words import condition, counted, identity, seconds, shown

FETCHERS = 20_000  # that are remembered
FINAL, FIRST = -1, 0  # epochs: without a session, or its end; a new session
NOT_FOUND = "FETCH_SESSION_ID_NOT_FOUND"
WRONG_EPOCH = "INVALID_FETCH_SESSION_EPOCH"
LOST = frozenset({NOT_FOUND, WRONG_EPOCH, "FETCH_SESSION_TOPIC_ID_ERROR", "INCONSISTENT_TOPIC_ID"})
THRASH, WITHIN_S = 5, 600.0  # so many new sessions within so long
SLOTS = "max.incremental.fetch.session.cache.slots"


@dataclass(slots=True, eq=False)
class Fetcher:
    """`session`: its number, 0 for none; `fetches` and `seen` are of the session. `opened`: the times of the
    newest sessions, with the loss that each followed.
    """

    track: Track
    session: int = 0
    fetches: int = 0
    seen: float = 0.0
    span: Span | None = None
    lost: str = ""
    opened: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=THRASH))
    thrash: Span | None = None


class Fetches:
    """Reads the exchanges of Fetch."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.by_connection: Recent[str, Fetcher] = Recent(FETCHERS)
        self.by_session: Recent[str, Fetcher] = Recent(FETCHERS)

    def read(self, told: Told) -> None:
        request = told.request
        if "session_epoch" not in request:
            return
        fetcher, epoch = self._fetcher(told), request["session_epoch"]
        kind = "full" if epoch in (FINAL, FIRST) else "incremental"
        words = _words(request, kind, epoch)
        plain = epoch == FINAL and not request["session_id"]
        if told.error in LOST:
            self._lost(fetcher, told, f"{words}: {told.error}")
            return
        if kind == "full" and request["session_id"]:
            self._over(fetcher, told.begin, "closed by its client")
        given = (told.response or {}).get("session_id", 0)
        if told.response is None:
            words += "; no answer"
        elif told.error:
            words += f": {told.error}"
        elif epoch == FIRST and not given:
            words += f"; the broker keeps no session for it: its cache may be full ({SLOTS})"
        elif given and given != fetcher.session:
            self._opened(fetcher, told, given, new=epoch == FIRST)
        fetcher.fetches += 1
        fetcher.seen = told.end
        number = epoch if epoch > FINAL else None
        kind = "plain" if plain else kind
        self.board.mark(fetcher.track, kind, told.begin, told.end, words, told.key, told.error, number)

    def forget(self) -> None:
        """Nobody looked for a while: sessions may have ended, and others may have begun."""
        for one in (*self.by_connection.kept.values(), *self.by_session.kept.values()):
            one.span, one.session, one.seen, one.lost, one.thrash = None, 0, 0.0, "", None
            one.opened.clear()

    def _fetcher(self, told: Told) -> Fetcher:
        """By its session, which outlives connections; else by its connection."""
        one, session = told.one, told.request["session_id"]
        connection = f"{one.connection}/{one.connection_id}"
        key = f"{one.cluster}/{one.broker}/{connection}"
        found = self.by_session.get(_place(told, session)) if session else None
        if found is None:
            group = f"{one.cluster}/client/{identity(one.client_id or '')}"
            member = f"{one.broker}/{connection}"
            found = self.by_connection.made(key, lambda: Fetcher(Track(group, member)))
        self.by_connection.put(key, found)
        self._describe(found, told)
        return found

    def _describe(self, fetcher: Fetcher, told: Told) -> None:
        one, client = told.one, shown(told.one.client_id or "no client id")
        who = condition(client_id=one.client_id)
        where = f"api == Fetch and {who}" if who else ""
        self.board.header(fetcher.track.group, client, {"cluster": one.cluster}, where)
        about = {"broker": one.broker, "client id": client, "host": told.host}
        about["session"] = str(fetcher.session or "")
        where += f" and {condition(client=told.host, broker=one.broker)}" if where else ""
        self.board.lane(fetcher.track, f"broker {one.broker}", about, where)

    def _opened(self, fetcher: Fetcher, told: Told, session: int, new: bool) -> None:
        self._over(fetcher, told.begin, "replaced by another")
        fetcher.session, fetcher.fetches, fetcher.seen = session, 0, told.end
        self.by_session.put(_place(told, session), fetcher)
        words = f"fetch session {session} of broker {told.one.broker}"
        fetcher.span = self.board.began(fetcher.track, "session", told.end, told.end, words, told.key)
        self._describe(fetcher, told)
        if new:
            fetcher.opened.append((told.end, fetcher.lost))
            fetcher.lost = ""
            self._thrashes(fetcher, told)

    def _thrashes(self, fetcher: Fetcher, told: Told) -> None:
        """Many sessions within a short time spare nothing."""
        first = fetcher.opened[0][0]
        if len(fetcher.opened) < THRASH or told.end - first > WITHIN_S:
            fetcher.thrash = None
            return
        lost = [why for _, why in fetcher.opened if why]
        words = f"{THRASH} fetch sessions within {seconds(told.end - first)}"
        words += f", {len(lost)} of them after {lost[-1]}" if lost else ""
        words += f": they spare nothing; more fetchers than {SLOTS}, or consumers that are opened anew?"
        if fetcher.thrash is None:
            fetcher.thrash = self.board.began(fetcher.track, "thrash", first, told.end, words, told.key)
        fetcher.thrash = self.board.changed(fetcher.thrash, end=told.end, text=words, open=False)

    def _lost(self, fetcher: Fetcher, told: Told, words: str) -> None:
        """The broker knows the session no more, or at another epoch."""
        since = (
            f" {seconds(max(0.0, told.begin - fetcher.seen))} after its last fetch" if fetcher.seen else ""
        )
        session, epoch = told.request["session_id"], told.request["session_epoch"]
        why = (
            f": session {session} is known no more{since}; it was evicted ({SLOTS}), or the broker restarted"
        )
        if told.error != NOT_FOUND:
            why = f": session {session} is over{since}"
        if told.error == WRONG_EPOCH:
            why += "; an answer was lost, or another client uses it"
        self.board.mark(fetcher.track, "lost", told.begin, told.end, words + why, told.key, told.error, epoch)
        self._over(fetcher, told.end, "evicted" if told.error == NOT_FOUND else told.error, told.error)
        fetcher.lost = told.error

    def _over(self, fetcher: Fetcher, at: float, how: str, error: str = "") -> None:
        if fetcher.span is not None:
            words = f"{fetcher.span.mark.text}, {how} after {counted(fetcher.fetches, 'fetch', 'fetches')}"
            self.board.ended(fetcher.span, at, text=words, error=error)
        fetcher.span, fetcher.session = None, 0


def _place(told: Told, session: int) -> str:
    return f"{told.one.cluster}/{told.one.broker}/{session}"


def _words(request: Values, kind: str, epoch: int) -> str:
    """The kind of a Fetch request, its session, and its number of partitions, as text."""
    asked = sum(len(topic["partitions"]) for topic in request["topics"])
    forgotten = sum(len(topic["partitions"]) for topic in request.get("forgotten_topics_data") or ())
    session = f" of session {request['session_id']}" if request["session_id"] else ""
    words = f"{kind} fetch{session}" + (f", epoch {epoch}" if epoch > FIRST else "")
    if epoch == FINAL:
        words += ", the last of its session" if request["session_id"] else ", without a session"
    elif epoch == FIRST:
        words += ", for a new session"
    words += f"; {counted(asked, 'partition')}" if kind == "full" or asked else ""
    words += " added or changed" if kind == "incremental" and asked else ""
    return words + (f"; {counted(forgotten, 'partition')} forgotten" if forgotten else "")
