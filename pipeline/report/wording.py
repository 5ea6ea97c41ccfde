"""The wording of a report: figures, times, names, and the command that shows an exchange."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode

from klamm.pipeline.detectors.connections.client_ids import DEFAULTS
from klamm.pipeline.detectors.finding import Evidence, Finding
from klamm.pipeline.report.gathering import Client, EvidenceExchange

NO_CLIENT_ID = "(no client id)"
S = 1_000_000  # us
TELLING = ("ApiVersions", "Produce", "Fetch", "JoinGroup")  # their versions show how old a client is


def plain(text: str) -> str:
    """Text with escapes for characters that move a cursor, hide or turn other text, or end a line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def client(client_id: str | None) -> str:
    return NO_CLIENT_ID if client_id is None else plain(client_id) or '""'


def software(of: Client) -> str:
    """Its library; where the client did not send it (before version 3, ApiVersions has no name: KIP-511), the
    versions that it uses.
    """
    if of.software:
        return plain(of.software)
    by_id = (name for pattern, name in DEFAULTS.items() if re.fullmatch(pattern, of.client_id or ""))
    spoken = ", ".join(f"{api} v{of.versions[api]}" for api in TELLING if of.versions.get(api, -1) >= 0)
    library = next(by_id, "")
    known = f"{library} by its client id" if library else "not told"
    return f"{known}; {spoken}" if spoken else known


def who(one: Finding) -> str:
    """Its client, and its other subjects."""
    parts = [] if one.client_id is None else [client(one.client_id)]
    parts += [] if one.subject is None else [plain(one.subject)]
    return ", ".join(parts) or NO_CLIENT_ID


def count(number: int, what: str, many: str = "") -> str:
    """`1 client`, `1,234 clients`"""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def size(count: float) -> str:
    """87 B, 16.2 kB, 3.4 MB"""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def duration(ms: float) -> str:
    """0.42 ms, 4.1 ms, 2.50 s, 7 min"""
    if ms < 1000:
        return f"{ms:.1f} ms" if ms >= 1 else f"{ms:.2f} ms"
    seconds = ms / 1000
    if seconds < 120:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def local(time_us: int) -> datetime:
    """The time, with the time zone of this machine."""
    return utc(time_us).astimezone()


def utc(time_us: int) -> datetime:
    return datetime.fromtimestamp(time_us // S, UTC).replace(microsecond=time_us % S)


def clock(time_us: int, ms: bool = True) -> str:
    """16:01:28.055"""
    return local(time_us).strftime("%H:%M:%S.%f")[: -3 if ms else -7]


def day(time_us: int) -> str:
    return local(time_us).strftime("%Y-%m-%d")


def when(first_us: int, last_us: int, of_day: str = "") -> str:
    """The time span; with days where they are not `of_day`."""
    first, last = day(first_us), day(last_us)
    ms = last_us - first_us < 10 * S
    began, ended = clock(first_us, ms), clock(last_us, ms)
    from_ = began if first == of_day else f"{first} {began}"
    if began == ended and first == last:
        return f"at {from_}"
    return f"{from_} to {ended if last == first else f'{last} {ended}'}"


class Shown(NamedTuple):
    """The exchanges that show a finding: an expression, None for all, and times in us since 1970; `until_us`
    None: without an end.
    """

    where: str | None
    since_us: int
    until_us: int | None


def shown(of: Finding, one: Evidence, seen: EvidenceExchange | None) -> Shown:
    """This exchange, by its end, its client and its API. Of what is not in the table `exchanges`, what came
    next.
    """
    client_id = of.client_id if seen is None else seen.client_id
    wanted = [] if client_id is None else [f"client_id == {_quoted(client_id)}"]
    if seen is not None and seen.api is not None:
        wanted.append(f"api == {seen.api}")
    begin, end = (one.time_us, None) if seen is None else (seen.end_us - 1, seen.end_us + 2)
    return Shown(" and ".join(wanted) or None, begin, end)


def show(captures: Iterable[str], what: Shown) -> str:
    """The command that prints them with their fields."""
    words = ["klamm", "show", *captures, *([] if what.where is None else [what.where])]
    words += ["--since", _moment(what.since_us)]
    words += ["-n", "5"] if what.until_us is None else ["--until", _moment(what.until_us)]
    return " ".join(shlex.quote(word) for word in [*words, "-v"])


def place(what: Shown) -> str:
    """The end of the inspector's address with which it shows these exchanges."""
    wanted = {"where": what.where or "", "since": _seconds(what.since_us)}
    if what.until_us is not None:
        wanted["until"] = _seconds(what.until_us)
    return f"#exchanges?{urlencode({name: text for name, text in wanted.items() if text})}"


def web(captures: Iterable[str]) -> str:
    """The command that starts the inspector."""
    return shlex.join(["klamm", "web", *captures])


def _quoted(text: str) -> str:
    """A text as a literal of an expression, in ASCII."""
    return '"' + text.encode("unicode_escape").decode().replace('"', '\\"') + '"'


def _seconds(time_us: int) -> str:
    return f"{time_us // S}.{time_us % S:06}"


def _moment(time_us: int) -> str:
    return utc(time_us).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
