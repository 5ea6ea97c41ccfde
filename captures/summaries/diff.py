"""Compares two captures of the same work: the changes, the gravest first, and the start of connections last.

What may be luck is not said: a distribution has changed if its middle has by a factor, and chance alone
would do that less than once in a thousand times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, get_args

from klamm.captures.summaries.diff_measures import ApiUse, ClientUse, Work
from klamm.captures.summaries.histogram import Histogram

Aspect = Literal[
    "errors", "clients", "apis", "latency", "counts", "connections", "batches", "settings", "versions",
    "software", "sizes",
]  # fmt: skip
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)  # in the order of their weight
# Requests at the beginning of a connection, and how many at most: their number depends on reconnects.
STARTING = frozenset({"ApiVersions", "FindCoordinator", "Metadata", "SaslAuthenticate", "SaslHandshake"})
MOST_AT_START = 3  # requests of a connection
TOO_NEW = {"ApiVersions": {"UNSUPPORTED_VERSION"}}  # errors that a client of a newer version begins with
SOFTWARE = "ApiVersions client_software"
FEWEST = 10  # requests: below it, counts and shares say nothing
LEAST_MS = 1.0  # a shift of the median that matters, besides its factor
TAIL_FACTOR, TAIL_MS, TAIL_FEWEST = 3.0, 20.0, 500  # of the 99th percentile, and the exchanges it needs


class Difference(NamedTuple):
    """`client` is "" for all of them. `before` and `after` are for people; None: there is nothing.
    `at_start`: it is about how connections begin, of which there may be more or fewer by chance.
    """

    aspect: Aspect
    client: str
    what: str
    before: str | None
    after: str | None
    at_start: bool = False


def differences(before: Work, after: Work, factor: float) -> list[Difference]:
    """All differences, by weight, then the missing before the new, and by client. `factor`: the change of an
    amount that counts as a difference.
    """
    found: list[Difference] = []
    for client in sorted(before.clients.keys() | after.clients.keys()):
        old, new = before.clients.get(client), after.clients.get(client)
        if old is None or new is None:
            at_start = _only_begins(old) and _only_begins(new)
            found.append(Difference("clients", client, "client", _whole(old), _whole(new), at_start))
        else:
            found += _Pair(client, old, new, before.requests, after.requests, factor).differences()
    return sorted(found, key=_weight)


def _weight(one: Difference) -> tuple[bool, int, bool, str, str]:
    is_new = one.aspect in ("clients", "apis") and one.before is None
    return one.at_start, ASPECTS.index(one.aspect), is_new, one.client, one.what


def _only_begins(client: ClientUse | None) -> bool:
    if client is None:
        return True
    return all(_begins(client, api, use) and _is_too_new(api, use) for api, use in client.apis.items())


def _begins(client: ClientUse, api: str, use: ApiUse | None) -> bool:
    """Whether the API is used only as often as connections begin."""
    return api in STARTING and (use is None or use.requests <= MOST_AT_START * len(client.connections))


def _whole(client: ClientUse | None) -> str | None:
    if client is None:
        return None
    apis = sorted(client.apis, key=lambda name: -client.apis[name].requests)
    return f"{_count(client.requests)} requests: {_some(apis)}"


class _Pair(NamedTuple):
    """A client that is in both."""

    client: str
    old: ClientUse
    new: ClientUse
    all_before: int  # requests of all clients
    all_after: int
    factor: float

    def differences(self) -> Iterator[Difference]:
        for api in sorted(self.old.apis.keys() | self.new.apis.keys()):
            old, new = self.old.apis.get(api), self.new.apis.get(api)
            begins = _begins(self.old, api, old) and _begins(self.new, api, new)
            if old is None or new is None:
                only = self.one("apis", api, _requests(old), _requests(new))
                yield only._replace(at_start=begins and _is_too_new(api, old, new))
                continue
            for one in self.api(api, old, new):
                at_start = begins and (one.aspect != "errors" or _is_too_new(api, old, new))
                yield one._replace(at_start=at_start)
        yield from self.settings()
        yield from self.batches()
        connections = len(self.old.connections), len(self.new.connections)
        if self.apart(*connections) and abs(connections[0] - connections[1]) > 1:
            yield self.one("connections", "connections", *map(_count, connections))

    def one(self, aspect: Aspect, what: str, before: str | None, after: str | None) -> Difference:
        return Difference(aspect, self.client, what, before, after)

    def apart(self, before: float, after: float) -> bool:
        least, most = sorted((before, after))
        return most > least * self.factor if least > 0 else most > 0

    def api(self, api: str, old: ApiUse, new: ApiUse) -> Iterator[Difference]:
        errors = (_errors(use) for use in (old, new))
        if self.errors_differ(old, new):
            yield self.one("errors", f"{api} errors", *errors)
        if old.versions.keys() != new.versions.keys():
            yield self.one("versions", f"{api} version", _listed(old.versions), _listed(new.versions))
        if self.counts_differ(old.requests, new.requests):
            before = f"{_count(old.requests)} ({old.requests / self.all_before:.1%})"
            after = f"{_count(new.requests)} ({new.requests / self.all_after:.1%})"
            yield self.one("counts", f"{api} requests", before, after)
        yield from self.latency(api, old.latency_ms, new.latency_ms)
        for what, sizes in (
            ("request", (old.request_bytes, new.request_bytes)),
            ("response", (old.response_bytes, new.response_bytes)),
        ):
            if self.shifted(*sizes):
                yield self.one("sizes", f"{api} {what} size", *(_bytes(each.quantile(0.5)) for each in sizes))

    def errors_differ(self, old: ApiUse, new: ApiUse) -> bool:
        """An error that is new, or gone; or of which, or of what has no answer, the share is another. A few
        requests wait for their answers wherever connections end.
        """
        if old.errors.keys() != new.errors.keys():
            return True
        counts = [
            (old.unanswered, new.unanswered),
            *((old.errors[name], new.errors[name]) for name in old.errors),
        ]
        return any(
            self.apart(before / max(1, old.requests), after / max(1, new.requests))
            for before, after in counts
            if max(before, after) >= FEWEST
        )

    def counts_differ(self, old: int, new: int) -> bool:
        """Absolutely, and as a share of all: a capture that is twice as long is no difference."""
        shares = old / max(1, self.all_before), new / max(1, self.all_after)
        return abs(old - new) >= FEWEST and self.apart(old, new) and self.apart(*shares)

    def shifted(self, old: Histogram, new: Histogram) -> bool:
        return self.apart(old.quantile(0.5), new.quantile(0.5)) and old.differs(new)

    def latency(self, api: str, old: Histogram, new: Histogram) -> Iterator[Difference]:
        middles = old.quantile(0.5), new.quantile(0.5)
        if abs(middles[0] - middles[1]) >= LEAST_MS and self.shifted(old, new):
            yield self.one("latency", f"{api} latency p50", *map(_ms, middles))
        ends = old.quantile(0.99), new.quantile(0.99)
        least, most = sorted(ends)
        enough = min(len(old), len(new)) >= TAIL_FEWEST
        if enough and most - least >= TAIL_MS and most > least * TAIL_FACTOR:
            yield self.one("latency", f"{api} latency p99", *map(_ms, ends))

    def settings(self) -> Iterator[Difference]:
        for name in sorted(self.old.settings.keys() | self.new.settings.keys()):
            old, new = self.old.settings.get(name), self.new.settings.get(name)
            if not old or not new or old == new:
                continue  # of an API that only one of them uses, nothing can have changed
            aspect: Aspect = "software" if name.startswith(SOFTWARE) else "settings"
            what = name.removeprefix("ApiVersions ")
            yield self.one(aspect, what, *(_listed(each) for each in (old, new)))

    def batches(self) -> Iterator[Difference]:
        records = self.old.batch_records, self.new.batch_records
        if self.shifted(*records):
            yield self.one("batches", "records per batch", *(f"{each.mean:.1f}" for each in records))
        sizes = self.old.batch_bytes, self.new.batch_bytes
        if self.shifted(*sizes):
            yield self.one("batches", "batch size", *(_bytes(each.quantile(0.5)) for each in sizes))


def _is_too_new(api: str, *uses: ApiUse | None) -> bool:
    """Whether the only errors are those of a client that is newer than its broker."""
    there = [use for use in uses if use is not None]
    return not any(use.unanswered or use.errors.keys() - TOO_NEW.get(api, set()) for use in there)


def _requests(use: ApiUse | None) -> str | None:
    return None if use is None else f"{_count(use.requests)} requests"


def _errors(use: ApiUse) -> str | None:
    parts = [f"{name} x{_count(count)}" for name, count in use.errors.most_common()]
    if use.unanswered:
        parts.append(f"{_count(use.unanswered)} without an answer")
    return f"{', '.join(parts)} of {_count(use.requests)}" if parts else "none"


def _listed(values: Iterable[Any]) -> str:
    return _some(sorted(map(str, values), key=lambda text: (len(text), text)))


def _some(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _count(number: int) -> str:
    return f"{number:,}"


def _ms(value: float) -> str:
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"


def _bytes(value: float) -> str:
    return f"{value:,.0f} B" if value < 10_000 else f"{value / 1000:,.0f} kB"
