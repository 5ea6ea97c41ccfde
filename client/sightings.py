"""Selects exchanges, and prints each in a line."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from klamm.client.fates import fate_words, unanswered_words
from klamm.client.faults import Names
from klamm.client.types import Exchange


class Sought(NamedTuple):
    """Patterns, any of which is enough; empty: anything. `where` is for klamm to judge."""

    api: tuple[str, ...] = ()
    client_id: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    broker: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    where: str | None = None

    @classmethod
    def of(
        cls,
        api: Names | None = None,
        client_id: Names | None = None,
        topic: Names | None = None,
        group: Names | None = None,
        broker: int | str | None = None,
        error: Names | None = None,
        where: str | None = None,
        cluster: Names | None = None,
    ) -> Sought:
        """Names of APIs and errors in Kafka's newest words. ValueError for those that there are not, and for
        a `where` that can hold for none of the APIs: what cannot be there proves nothing by its absence.
        """
        apis = tuple(map(_api, _each(api)))
        if where is not None:
            _check(where, apis)
        return cls(
            apis,
            _each(client_id),
            _each(topic),
            _each(group),
            () if broker is None else (str(broker),),
            tuple(map(_error, _each(error))),
            _each(cluster),
            where,
        )

    def holds(self, exchange: Exchange) -> bool:
        """Whether the exchange is one of these, without regard to `where`."""
        return all(
            not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
            for patterns, names in zip(self[:-1], _names(exchange), strict=True)
        )

    def __str__(self) -> str:
        parts = [
            f"{key} {' or '.join(found)}"
            for key, found in zip(self._fields[:-1], self[:-1], strict=True)
            if found
        ]
        return ", ".join([*parts, f"where {self.where}"] if self.where else parts) or "any API"


def line(exchange: Exchange) -> str:
    """The time, the request, both ends, its subjects, and the result."""
    topics = ",".join(f"{name}{indexes or ''}" for name, indexes in exchange.topics.items())
    errors = ",".join(f"{name} x{count}" for name, count in exchange.errors.items())
    latency = "no answer" if exchange.latency_ms is None else f"{exchange.latency_ms:.1f} ms"
    clock = f"{time.strftime('%H:%M:%S', time.localtime(exchange.time))}.{int(exchange.time % 1 * 1000):03}"
    parts = [
        clock,
        f"{exchange.api} {exchange.version}",
        f"{exchange.client_id or '(no client id)'} -> broker {exchange.broker}",
        topics,
        exchange.group and f"group {exchange.group}",
        exchange.transactional_id and f"transactional id {exchange.transactional_id}",
        errors or (not exchange.unanswered and "ok"),
        unanswered_words(exchange.unanswered, exchange.waited_ms) or latency,
        exchange.origin == "klamm" and f"{'changed' if exchange.changed else 'answered'} by klamm",
        *fate_words(exchange.fates),
    ]
    return "  ".join(part for part in parts if part)


def _names(exchange: Exchange) -> Iterable[Iterable[str]]:
    """The names in the order of Sought."""
    yield (exchange.api,)
    yield (exchange.client_id or "",)
    yield exchange.topics
    yield (exchange.group or "").split(",")
    yield (exchange.broker,)
    yield exchange.errors
    yield (exchange.cluster,)


def _each(names: Names | None) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _api(name: str) -> str:
    from klamm.decoders import API, UnknownApi

    if set(name) & set("*?["):
        return _some(name, [api.name for api in API], "API")
    try:
        return API[name].name
    except UnknownApi as unknown:
        raise ValueError(str(unknown)) from None


def _check(where: str, apis: tuple[str, ...]) -> None:
    from klamm.decoders import API
    from klamm.rules.expressions import SIDES, ExpressionError, parse

    try:
        parsed = parse(where)
    except ExpressionError as wrong:
        raise ValueError(f"where: {wrong}") from None
    meant = [api for api in API if not apis or any(fnmatchcase(api.name, pattern) for pattern in apis)]
    fits = any(
        parsed.misfit(api, version, side) is None
        for api in meant
        for version in api.versions
        for side in SIDES
    )
    if meant and not fits:
        raise ValueError(f"where: {parsed.nowhere(meant)}")


def _error(name: str) -> str:
    from klamm.decoders import ERRORS

    if set(name) & set("*?["):
        return _some(name, [error.name for error in ERRORS], "error")
    try:
        return ERRORS[name].name
    except LookupError as unknown:
        raise ValueError(str(unknown)) from None


def _some(pattern: str, names: Sequence[str], kind: str) -> str:
    """A pattern that fits some of these. Raises ValueError."""
    if not any(fnmatchcase(name, pattern) for name in names):
        raise ValueError(f"{pattern!r} fits the name of no {kind} of Kafka")
    return pattern
