"""The summary that `klamm import` prints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from klamm.captures.captured import api_name
from klamm.cli.tables import print_table
from klamm.proxy.log.lines import size

if TYPE_CHECKING:
    from klamm.captures.packets.importing import Found, Hole
    from klamm.captures.packets.recognising import Kind

OTHERS: tuple[tuple[Kind, str], ...] = (("TLS", "of TLS"), ("other", "of neither"))
NAMED = 10  # holes, and brokers that are not read


def print_lines(found: Found, output: str) -> None:
    """For people."""
    print(f"{_count(found.packets, 'packet')}{_span(found)}")
    print(_connections(found))
    apis = _apis(found)
    if apis:
        print()
        print_table(("api", "requests", "responses"), [(name, f"{a:,}", f"{b:,}") for name, a, b in apis])
        print()
    for line in _besides(found):
        print(line)
    print(f"written to {output}" if found.connections["Kafka"] else "nothing was written")


def as_object(found: Found, problems: list[str], output: str) -> dict[str, Any]:
    """For programs. Times are in ns since 1970; `bytes` null: nobody knows how many."""
    kinds = found.connections
    return {
        "output": output,
        "packets": found.packets,
        "first_ns": found.first_ns,
        "last_ns": found.last_ns,
        "moved_times": found.moved_times,
        "connections": {"kafka": kinds["Kafka"], "tls": kinds["TLS"], "other": kinds["other"]},
        "mid_stream": found.mid_stream,
        "decrypted": found.decrypted,
        "apis": [{"api": name, "requests": a, "responses": b} for name, a, b in _apis(found)],
        "without_request": {"responses": found.without_request, "bytes": found.without_request_bytes},
        "lost": [{**hole._asdict(), "missing": max(hole.missing, 0) or None} for hole in found.holes],
        "cut": {"packets": found.cut_packets, "bytes": found.cut_bytes},
        "repeated_bytes": found.repeated_bytes,
        "not_read": [
            {"kind": kind, "to": to, "connections": count}
            for (kind, to), count in found.not_read.most_common()
        ],
        "unread_packets": [
            {"why": why, "what": what, "packets": count} for (why, what), count in found.unread.most_common()
        ],
        "problems": problems,
    }


def _apis(found: Found) -> list[tuple[str, int, int]]:
    """Name, requests, responses; the most frequent first."""
    keys = sorted(found.requests | found.responses, key=lambda key: (-found.requests[key], key))
    return [(api_name(key), found.requests[key], found.responses[key]) for key in keys]


def _span(found: Found) -> str:
    if not found.packets:
        return ""
    return f" from {_time(found.first_ns)} to {_time(found.last_ns)}"


def _connections(found: Found) -> str:
    kinds = found.connections
    notes = [
        f"{count:,} {what}"
        for count, what in ((found.mid_stream, "older than the packets"), (found.decrypted, "in TLS"))
        if count
    ]
    text = f"{_count(kinds['Kafka'], 'connection')} of Kafka" + (f" ({', '.join(notes)})" if notes else "")
    others = [f"{kinds[kind]:,} {what}" for kind, what in OTHERS if kinds[kind]]
    return ", ".join([text, *others])


def _besides(found: Found) -> Iterator[str]:
    tls = [(to, count) for (kind, to), count in found.not_read.most_common() if kind == "TLS"]
    for to, count in tls[:NAMED]:
        yield f"TLS, not read: {_count(count, 'connection')} to {to}"
    if len(tls) > NAMED:
        more = sum(count for _, count in tls[NAMED:])
        yield f"TLS, not read: {more:,} more, to {len(tls) - NAMED:,} others"
    if tls:
        yield "TLS is read with --keys, if clients wrote an SSLKEYLOGFILE"
    if found.without_request:
        amount = f"{found.without_request:,}, {size(found.without_request_bytes)}"
        yield f"answers without their requests: {amount}"
    for hole in sorted(found.holes)[:NAMED]:
        yield f"lost: {_hole(hole)}"
    if len(found.holes) > NAMED:
        missing = sum(max(hole.missing, 0) for hole in found.holes)
        yield f"lost: {missing:,} bytes at {len(found.holes):,} places in all; --json names them"
    if found.cut_packets:
        cut = f"{found.cut_bytes:,} bytes of {_count(found.cut_packets, 'packet')}"
        yield f"cut: {cut}, where they were captured (tcpdump keeps all with -s 0)"
    if found.moved_times:
        moved = _count(found.moved_times, "packet")
        yield f"times: {moved} from before 1970 or after 2262, moved to these years"
    yield from _unread(found)
    if found.connections["other"] and not found.connections["Kafka"]:
        yield "no Kafka was found; if there is some, say its --port"


def _unread(found: Found) -> Iterator[str]:
    """A line for each reason, with the kinds of packets: "18 packets, not TCP (14 ARP, 4 ICMPv6)"."""
    reasons: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for (why, what), count in found.unread.most_common():
        reasons[why].append((what, count))
    for reason, kinds in reasons.items():
        total = sum(count for _, count in kinds)
        named = [f"{count:,} {what}" if len(kinds) > 1 else what for what, count in kinds[:NAMED]]
        if len(kinds) > NAMED:
            more = sum(count for _, count in kinds[NAMED:])
            named.append(f"{more:,} of {len(kinds) - NAMED:,} more kinds")
        yield f"not read: {_count(total, 'packet')}, {reason} ({', '.join(named)})"


def _hole(hole: Hole) -> str:
    amount = "an unknown number of" if hole.missing < 0 else f"{hole.missing:,}"
    ends = (hole.client, hole.broker) if hole.side == "request" else (hole.broker, hole.client)
    return f"{amount} bytes of {hole.side}s, {ends[0]} to {ends[1]}, at {_time(hole.time_ns)}"


def _time(time_ns: int) -> str:
    moment = datetime.fromtimestamp(time_ns / 1e9, UTC)
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds") + "Z"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
