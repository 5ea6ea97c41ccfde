"""What holds once nothing moves any more: of one connection, and of the counters of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from klamm.proxy.session.observing.counters import Stats
from tests.simulation.judge import SHOWN, Broken
from tests.simulation.pair import CUT_SHORT, Pair

STALLED = {"dropped", "cut"}  # faults behind which requests may have no answer
Api = tuple[str, int]  # name and version


def settled(pair: Pair) -> None:
    """Of a connection on which nothing moves."""
    _answered(pair)
    _rest(pair)
    if 0 < pair.must_end <= pair.broker.given and not pair.over and not stalls(pair):
        raise Broken("an answer that nobody asked for ends the connection", f"{pair.causes}")
    if not pair.over and not stalls(pair) and _refused(pair):
        raise Broken("a request whose answer may carry addresses ends the connection", f"{pair.causes}")
    connection = pair.edge.session.connection
    if not pair.over and not pair.causes and not stalls(pair):
        if pair.edge.reason and not pair.client.ended:
            raise Broken("a connection ends for a reason", f"{pair.edge.reason}, {pair.edge.problem}")
        if connection.held or pair.edge.session.pending():
            raise Broken(
                "nothing is held, and no request waits, between exchanges",
                f"{connection.held} bytes, {pair.edge.session.pending()} requests",
            )


def _refused(pair: Pair) -> bool:
    """Has klamm read a request that it must not let through?"""
    client = pair.client
    return any(asked.kind.form == "refused" and client.gave(asked) for asked in client.asked)


def stalls(pair: Pair) -> bool:
    """May a rule have kept an answer for good, or ended the connection?"""
    return any(asked.may & STALLED for asked in pair.client.asked)


def _answered(pair: Pair) -> None:
    """Each request has its answer, or there is a cause for that."""
    if stalls(pair) or pair.causes - {"drained", CUT_SHORT}:
        return
    if pair.over and not pair.causes and not pair.client.ended:
        raise Broken("a connection ends for a reason", f"{pair.edge.reason}, {pair.edge.problem}")
    for asked in pair.client.asked:
        whole = pair.client.gave(asked)
        if not asked.arrived and not asked.own and whole and not pair.causes and not asked.may:
            raise Broken("requests reach the broker", f"{asked} did not")
        due = asked.awaited and (asked.arrived or not pair.causes) and not (asked.token and pair.causes)
        if due and whole and not asked.answered:
            raise Broken(
                "each request is answered, or the connection closed with a reason", f"{asked} is not"
            )


def _rest(pair: Pair) -> None:
    """Bytes of a frame that has not come whole are the beginning of the next one."""
    judge, client, broker = pair.judge, pair.client, pair.broker
    rest = bytes(broker.incoming)
    possible = [asked.frame for asked in client.asked[judge.next_asked :]]
    if rest and not any(frame.startswith(rest) for frame in possible):
        raise Broken("requests reach the broker as they were written, in their order", repr(rest[:SHOWN]))
    undisturbed = not pair.causes - {CUT_SHORT} and not any(asked.may for asked in client.asked)
    if client.end_given and undisturbed and possible:
        given = client.given - client.asked[judge.next_asked].start
        if len(rest) != given:
            raise Broken(
                "a request that is cut short goes on as far as it came", f"{len(rest)} of {given} bytes"
            )
    rest = bytes(client.incoming)
    answers = broker.answers[judge.next_answer :]
    own = any("answered" in asked.may for asked in client.asked)
    if rest and answers and not own and not any(_begins(answer.goes, rest) for answer in answers):
        raise Broken("answers reach the client as the broker wrote them", repr(rest[:SHOWN]))


def _begins(goes: bytes | None, rest: bytes) -> bool:
    return goes is None or goes.startswith(rest)


def captured(pair: Pair) -> None:
    """The capture of a connection that is over has the frames that reached the two sides."""
    if pair.capture is None or not pair.over:
        return
    whole = not pair.causes and not stalls(pair)
    pair.capture.judge("request", pair.judge.at_broker, whole)
    pair.capture.judge("response", pair.judge.at_client, whole)


class Between(NamedTuple):
    """A counter is not below `least`, nor above `most`. They differ where a connection has ended early."""

    least: Counter[Api]
    most: Counter[Api]

    @classmethod
    def none(cls) -> Between:
        return cls(Counter(), Counter())

    def add(self, api: Api, value: int, sure: bool, begun: bool) -> None:
        if sure:
            self.least[api] += value
        if sure or begun:
            self.most[api] += value

    def judge(self, what: str, counted: Counter[Api]) -> None:
        for api in sorted({*self.most, *counted}):
            if not self.least[api] <= counted[api] <= self.most[api]:
                text = (
                    f"{what} of {api[0]} v{api[1]}: {counted[api]}, not {self.least[api]} to {self.most[api]}"
                )
                raise Broken("counters equal the model's", text)


COUNTED = ("requests", "request_bytes", "one_way", "responses", "response_bytes")
COUNTED_BY_BODIES = ("errors",)
ANY = 1 << 20  # errors in an answer that is not as its layout says


def totals(pairs: Iterable[Pair], stats: Stats, metered: bool) -> None:
    """The counters of each API and version are those of the frames. `metered`: bodies are read for them."""
    expected = {name: Between.none() for name in COUNTED + (COUNTED_BY_BODIES if metered else ())}
    for pair in pairs:
        _requests(pair, expected)
        _responses(pair, expected)
    for name, between in expected.items():
        counted: Counter[Api] = Counter()
        for counters in stats.requests.values():
            counted[counters.api, counters.version] += _number(getattr(counters, name))
        between.judge(name, counted)


def _number(value: int | Counter[int]) -> int:
    return value if isinstance(value, int) else value.total()


def _requests(pair: Pair, expected: dict[str, Between]) -> None:
    for asked in pair.client.asked:
        if asked.token:
            continue
        api, begun = asked.kind.counted_as, asked.start < pair.client.given
        sure = asked.arrived or asked.own
        expected["requests"].add(api, 1, sure, begun)
        expected["request_bytes"].add(api, len(asked.frame), sure, begun)
        if not asked.awaited:
            expected["one_way"].add(api, 1, sure, begun)


def _responses(pair: Pair, expected: dict[str, Between]) -> None:
    start = 0
    for number, answer in enumerate(pair.broker.answers):
        api = answer.asked.kind.counted_as
        sure = number < pair.judge.next_answer and not answer.swallowed
        begun = start < pair.broker.given
        start += len(answer.came)
        if answer.asked.token:
            continue
        expected["responses"].add(api, 1, sure, begun)
        expected["response_bytes"].add(api, len(answer.came), sure, begun)
        if "errors" in expected:
            known, errors = answer.errors is not None, ANY if answer.errors is None else answer.errors
            expected["errors"].add(api, errors, known and sure, begun)
