"""`klamm show --stats`: captures summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from klamm.captures.captured import api_name
from klamm.captures.summaries import statistics, statistics_errors
from klamm.captures.summaries.histogram import Histogram
from klamm.captures.summaries.statistics import Summing, Sums, Use
from klamm.captures.summaries.statistics_errors import ErrorCounts
from klamm.cli.tables import print_json, print_table
from klamm.decoders.text import printable
from klamm.proxy.log.lines import duration, size

if TYPE_CHECKING:
    from klamm.captures.storage.reading import Reading

SHOWN = 20  # clients
SIZE = 4  # bytes of the size field, which frames are kept without


def sum_up(found: Reading, headers: bool, as_json: bool) -> None:
    """Reads the whole capture, and prints the sums. `headers`: without bodies, which is faster."""
    summing, errors = Summing(), None if headers else ErrorCounts()
    summing.add(_batches(found, errors))
    sums, counts = summing.end(), errors.errors if errors is not None else {}
    if as_json:
        print_json(_object(sums, counts, headers))
        return
    print(_about(sums))
    if sums.apis:
        print()
        print_table(
            (
                "api",
                "version",
                "requests",
                "",
                "sent",
                "received",
                "largest",
                "p50",
                "p99",
                "longest",
                "errors",
            ),
            _apis(sums, counts),
        )
        print()
        print_table(("client id", "requests", "", "sent", "received"), _clients(sums))
    for line in _besides(sums, errors):
        print(line)


def _batches(found: Reading, errors: ErrorCounts | None) -> Iterator[Any]:
    if errors is None:
        yield from found.batches(statistics.WANTED)
        return
    for batch in found.batches({*statistics.WANTED, *statistics_errors.WANTED}):
        errors.add(batch)
        yield batch.select([name for name in batch.schema.names if name in statistics.WANTED])


def _about(sums: Sums) -> str:
    if not sums.rows:
        return "nothing was captured"
    first, last = (datetime.fromtimestamp(ns / 1e9) for ns in (sums.first_ns, sums.last_ns))
    seconds = (sums.last_ns - sums.first_ns) / 1e9
    clients, connections = len(sums.clients), len(sums.connections)
    return (
        f"{first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} ({seconds:,.1f} s): "
        f"{sums.total.requests:,} requests of {clients} client id{'s' * (clients != 1)} "
        f"in {connections} connection{'s' * (connections != 1)}"
    )


def _apis(sums: Sums, errors: dict[tuple[int, int], Counter[str]]) -> Iterator[tuple[str, ...]]:
    total = sums.total
    for kind, use in sorted(sums.apis.items(), key=lambda one: (-one[1].requests, one[0])):
        latency = sums.latencies_ms.get(kind, Histogram())
        times = (latency.quantile(0.5), latency.quantile(0.99), latency.most) if latency.counts else ()
        yield (
            api_name(kind[0]),
            f"v{kind[1]}",
            *_amounts(use, total),
            f"{size(use.largest_request + SIZE)}, {size(use.largest_response + SIZE)}",
            *(map(duration, times) if times else ("", "", "")),
            ", ".join(f"{name} {count:,}" for name, count in errors.get(kind, Counter()).most_common()),
        )


def _clients(sums: Sums) -> Iterator[tuple[str, ...]]:
    clients = sorted(sums.clients.items(), key=lambda one: (-one[1].requests, one[0] or ""))
    for client, use in clients[:SHOWN]:
        yield printable("(none)" if client is None else client), *_amounts(use, sums.total)
    if len(clients) > SHOWN:
        rest = Use()
        for _, use in clients[SHOWN:]:
            rest.requests += use.requests
            rest.responses += use.responses
            rest.request_bytes += use.request_bytes
            rest.response_bytes += use.response_bytes
        yield f"... {len(clients) - SHOWN} more", *_amounts(rest, sums.total)


def _amounts(use: Use, of: Use) -> tuple[str, ...]:
    share = f"{use.requests / of.requests:.1%}" if of.requests else ""
    sent, received = use.request_bytes + SIZE * use.requests, use.response_bytes + SIZE * use.responses
    return f"{use.requests:,}", share, size(sent), size(received)


def _besides(sums: Sums, errors: ErrorCounts | None) -> Iterator[str]:
    """Further lines, where there is something to say."""
    if sums.fates:
        yield "\nklamm: " + ", ".join(
            f"{count:,} {side}{'s' * (count != 1)} {fate}" for (side, fate), count in sums.fates.most_common()
        )
    if sums.unanswered:
        yield f"\nwithout an answer: {sums.unanswered:,} request{'s' * (sums.unanswered != 1)}"
    if sums.without_request.responses:
        _, _, _, received = _amounts(sums.without_request, sums.total)
        yield f"\nanswers without their requests: {sums.without_request.responses:,}, {received}"
    if errors is not None and errors.unread:
        yield f"\nnot decoded: {errors.unread:,} response{'s' * (errors.unread != 1)}"
    if sums.kinds["token"]:
        yield f"\nSASL tokens: {sums.kinds['token']:,}"
    for text, count in sums.lost.most_common():
        frames = f"lost: {count:,} frame{'s' * (count != 1)}" if count or not text else ""
        yield "\n" + ": ".join(filter(None, (frames, printable(text))))


def _object(sums: Sums, errors: dict[tuple[int, int], Counter[str]], headers: bool) -> dict[str, Any]:
    apis = []
    for kind, use in sorted(sums.apis.items()):
        latency = sums.latencies_ms.get(kind, Histogram())
        fields: dict[str, Any] = {"api": api_name(kind[0]), "version": kind[1], **_plain(use)}
        if latency.counts:
            shares = {"p50": latency.quantile(0.5), "p99": latency.quantile(0.99), "max": latency.most}
            fields["latency_ms"] = {name: round(value, 3) for name, value in shares.items()}
        if not headers:
            fields["errors"] = dict(errors.get(kind, Counter()))
        apis.append(fields)
    return {
        "first": round(sums.first_ns / 1e9, 6),
        "last": round(sums.last_ns / 1e9, 6),
        "connections": len(sums.connections),
        "apis": apis,
        "clients": [{"client_id": client, **_plain(use)} for client, use in sums.clients.items()],
        "fates": [
            {"side": side, "fate": fate, "frames": count} for (side, fate), count in sums.fates.items()
        ],
        "unanswered": sums.unanswered,
        "without_request": _plain(sums.without_request),
        "lost": [{"frames": count, "text": text} for text, count in sums.lost.items()],
    }


def _plain(use: Use) -> dict[str, int]:
    return {
        "requests": use.requests,
        "responses": use.responses,
        "request_bytes": use.request_bytes + SIZE * use.requests,
        "response_bytes": use.response_bytes + SIZE * use.responses,
    }
