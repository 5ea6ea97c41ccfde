"""The items of a timeline, and the board that collects those of one exchange."""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from klamm.dashboards.web.lanes.recent import Recent

HEADERS = 20_000  # groups whose lanes of their own are remembered
OPEN = 50_000  # marks that go on, and are remembered


class Lane(Struct, frozen=True, omit_defaults=True, tag="lane", tag_field="kind"):
    """A lane, told before its first mark and whenever more is known of it. `group` and `member` name it, and
    stay the same; an empty `member` is the lane of the group itself. `about`: facts for people; `where`: the
    filter of its exchanges.
    """

    group: str
    member: str
    label: str
    about: dict[str, str] = field(default_factory=dict)
    where: str = ""


class Mark(Struct, frozen=True, omit_defaults=True):
    """Something on a lane from `begin` to `end`, seconds since 1970. `key` opens the exchange that shows it.
    `error`: the name of Kafka's error. `epoch`: the generation or epoch. A mark with an `id` replaces the
    earlier one with the same; while it is `open` it goes on.
    """

    group: str
    member: str
    kind: str
    begin: float
    end: float
    text: str
    key: str = ""
    error: str = ""
    epoch: int | None = None
    id: int = 0
    open: bool = False


class Track:
    """A lane as it was told last."""

    __slots__ = ("group", "lane", "member")

    def __init__(self, group: str, member: str = "") -> None:
        self.group, self.member = group, member
        self.lane: Lane | None = None


class Span(NamedTuple):
    """A mark that lasts: the number by which it is told anew, and its lane."""

    track: Track
    mark: Mark


class Board:
    """Lanes and marks of the exchange that is read now, in the order in which the page gets them."""

    def __init__(self) -> None:
        self.items: list[Lane | Mark] = []
        self.ids = count(1)
        self.headers: Recent[str, Track] = Recent(HEADERS)
        self.open: Recent[int, Mark] = Recent(OPEN)

    def taken(self) -> list[Any]:
        """The items since the last call."""
        found, self.items = self.items, []
        return found

    def lane(self, track: Track, label: str, about: dict[str, str], where: str = "") -> None:
        """Tells the lane where something of it is new. Facts that are empty are left out."""
        known = {name: text for name, text in about.items() if text}
        lane = Lane(track.group, track.member, label, known, where)
        if lane != track.lane:
            track.lane = lane
            self.items.append(lane)

    def header(self, group: str, label: str, about: dict[str, str], where: str = "") -> Track:
        """Tells the lane of the group itself, as `lane` does."""
        track = self.headers.made(group, lambda: Track(group))
        self.lane(track, label, about, where)
        return track

    def mark(
        self,
        track: Track,
        kind: str,
        begin: float,
        end: float,
        text: str,
        key: str = "",
        error: str = "",
        epoch: int | None = None,
    ) -> None:
        mark = Mark(track.group, track.member, kind, begin, end, text, key, error, epoch)
        self.items.append(mark)

    def began(
        self, track: Track, kind: str, begin: float, end: float, text: str, key: str, epoch: int | None = None
    ) -> Span:
        """A mark that goes on until it is `ended`. `end`: until when that is known now. Without a text it is
        told when it is `changed`.
        """
        number = next(self.ids)
        mark = Mark(track.group, track.member, kind, begin, end, text, key, "", epoch, number, True)
        if text:
            self._told(mark)
        return Span(track, mark)

    def changed(self, span: Span, **fields: Any) -> Span:
        """The mark with other fields: end, text, open, ..."""
        mark = replace(span.mark, **fields)
        if mark != span.mark:
            self._told(mark)
        return Span(span.track, mark)

    def ended(self, span: Span, end: float, **fields: Any) -> None:
        self.changed(span, end=max(end, span.mark.begin), open=False, **fields)

    def cut(self, known: float) -> None:
        """All marks that go on end: they did until this time, or when they began."""
        for mark in list(self.open.kept.values()):
            self._told(replace(mark, end=max(known, mark.end), open=False))

    def _told(self, mark: Mark) -> None:
        self.items.append(mark)
        if mark.open:
            self.open.put(mark.id, mark)
        else:
            self.open.pop(mark.id)
