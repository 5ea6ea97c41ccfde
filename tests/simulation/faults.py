"""Faults that are put into klamm's session on purpose: the simulator has to find each of them.

They replace functions at run time, which a compiled session does not allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from klamm.captures.streams import kept
from klamm.captures.streams.framing import Stream
from klamm.proxy.session import requests, response_bodies, responses, rule_orders, unanswered
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.effects import Effect, Send, sends
from klamm.proxy.session.line import Line, Until
from klamm.proxy.session.memory import ResponsePattern
from klamm.proxy.session.pending import PendingQueue
from klamm.proxy.session.request_bodies import RequestBodies
from klamm.proxy.session.requests import Requests
from klamm.proxy.session.responses import Responses
from klamm.proxy.session.rewriting import addresses
from klamm.proxy.session.rewriting.topology import Topology
from klamm.proxy.session.rule_orders import RuleOrders
from klamm.proxy.session.session import Session
from klamm.proxy.session.undecodable import Undecodable
from klamm.rules.actions import assign
from tests.simulation.nodes import NODES
from tests.simulation.playing import play

MOST_SEEDS = 600  # in which each fault has to be found

Wrapped = Callable[[Callable[..., Any]], Callable[..., Any]]


class Planted(NamedTuple):
    """`wrap` makes the faulty function of the good one, which is the attribute `name` of `owner`."""

    text: str
    owner: Any
    name: str
    wrap: Wrapped


@contextmanager
def planted(fault: Planted) -> Iterator[None]:
    good = getattr(fault.owner, fault.name)
    setattr(fault.owner, fault.name, fault.wrap(good))
    try:
        yield
    finally:
        setattr(fault.owner, fault.name, good)


def found_after(fault: Planted, first: int = 0) -> tuple[int, str] | None:
    """How many seeds it took, and the invariant that did not hold: one that holds without the fault."""
    for count, seed in enumerate(range(first, first + MOST_SEEDS), 1):
        with planted(fault):
            failure = play(seed)
        if failure is not None and play(seed) is None:
            return count, failure.invariant
    return None


def port_off_by_one(good: Callable[..., Any]) -> Callable[..., Any]:
    def spliced(data: bytes, start: int, end: int, edits: list[tuple[int, int, bytes]]) -> Any:
        return good(data, start, end, [(a, b, new[:-1] + bytes([new[-1] ^ 1])) for a, b, new in edits])

    return spliced


def one_left(good: Callable[..., Any]) -> Callable[..., Any]:
    def standing(self: Connection, kind: Any, node: int, host: str, port: int) -> Any:
        return (host, port) if node == NODES[-1] else good(self, kind, node, host, port)

    return standing


def unbound_as_it_is(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, node, host: good(self, node, host) or (node.host, node.port)


def newest_first(good: Callable[..., Any]) -> Callable[..., Any]:
    def append(self: PendingQueue, pending: Any) -> None:
        before = list(self)
        good(self, pending)
        if before:
            before[-1].next, self.newest = None, before[-1]
            pending.next, self.oldest = self.oldest, pending

    return append


def any_id(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda connection, run, correlation: good(connection, run, correlation) or run.memory is not None


def counts_runs(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda memory, times, size: good(memory, min(times, 1), size)


def counts_no_bytes_of_runs(good: Callable[..., Any]) -> Callable[..., Any]:
    def count(self: Any, memory: Any, run: Any, summary: Any, times: int, size: int, elapsed: int) -> None:
        good(self, memory, run, summary, times, size // times, elapsed)

    return count


def loses_last_byte(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: good(self)[:-1]


def drops_small_tail(good: Callable[..., Any]) -> Callable[..., Any]:
    def dropping(to: Any, pieces: Any) -> list[Effect]:
        fewer = pieces[:-1] if len(pieces) > 2 and isinstance(pieces[-1], bytes) else pieces
        return good(to, fewer)

    return dropping


def awaits_all(good: Callable[..., Any]) -> Callable[..., Any]:
    def summary_of(self: Connection, plan: Any, columns: Any) -> Any:
        summary = good(self, plan, columns)
        summary.answered = True
        return summary

    return summary_of


def never_releases(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, size: good(self, max(0, size))


def forgets_unread(good: Callable[..., Any]) -> Callable[..., Any]:
    def unmute(self: Requests, now: int) -> Any:
        self.unread = []
        return good(self, now)

    return unmute


def forgets_delays(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, item, now: good(self, Until(0) if isinstance(item, Until) else item, now)


def out_of_turn(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, run: sends("client", list(run.made))


def stays_open(good: Callable[..., Any]) -> Callable[..., Any]:
    def close(self: Connection, side: Any, kind: str, api: str, message: str, more: Any = None) -> None:
        self.problem(kind, api, message, more)
        self.closing = True

    return close


def as_offered(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda body, asked, allow_unknown: body


def without_sends(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: [effect for effect in good(self) if not isinstance(effect, Send)]


def rest_to_client(good: Callable[..., Any]) -> Callable[..., Any]:
    def broker_closed(self: Session, how: str = "closed") -> list[Effect]:
        rest = b"".join(self.responses.kept)
        return [Send("client", rest), *good(self, how)] if rest else good(self, how)

    return broker_closed


def forgets_blocked(good: Callable[..., Any]) -> Callable[..., Any]:
    def bound(self: Responses, now: int) -> Any:
        if len(self.kept) > 1:
            self.connection.holds(-len(self.kept[-1]))
            self.kept_size -= len(self.kept.pop())
        return good(self, now)

    return bound


def old_rules(good: Callable[..., Any]) -> Callable[..., Any]:
    def read_again(self: Requests) -> None:
        self.revision = self.connection.context.revision

    return read_again


def blanks_nothing(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_: []


def with_the_body(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: f"{good(self)}: {self.body!r}"


def heard_by_nobody(good: Callable[..., Any]) -> Callable[..., Any]:
    def pick(self: RequestBodies, memory: Any, *rest: Any) -> None:
        if memory.plan.unknown is None:
            good(self, memory, *rest)

    return pick


def heard_if_whole(good: Callable[..., Any]) -> Callable[..., Any]:
    def pick(self: RequestBodies, memory: Any, body: bytes, now: int, begun: int = 0) -> None:
        if not begun:
            good(self, memory, body, now)

    return pick


def told_to_nobody(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda connection, reason, now: None


def not_counted(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda listeners, count: None


def swallows_nothing(good: Callable[..., Any]) -> Callable[..., Any]:
    def response(self: RuleOrders, memory: Any, run: Any, *rest: Any) -> Any:
        if run.answer_orders is not None and run.answer_orders.swallow:
            self.passed("response")
            return None
        return good(self, memory, run, *rest)

    return response


def never_made_up_for(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda orders, frame, answered: answered


def old_size(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, pos, body, new, late=0: [data[pos : pos + 4], *good(data, pos, body, new, late)[1:]]


def same_length(good: Callable[..., Any]) -> Callable[..., Any]:
    """The gaps of the pattern are not looked at."""
    return lambda self, data, pos, length: self.least == length and self.least > 0


def loses_a_chunk(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, data, time_ns: good(self, data[:-1] if len(data) > 100 else data, time_ns)


def not_in_answers(good: Callable[..., Any]) -> Callable[..., Any]:
    return lambda frame, *rest: () if frame.side == "response" else good(frame, *rest)


FAULTS = (
    Planted("a port that replaces another is off by one", addresses, "_spliced", port_off_by_one),
    Planted("the addresses of one node are not replaced", Connection, "standing", one_left),
    Planted("a node without a port of klamm keeps its address", Topology, "address", unbound_as_it_is),
    Planted("a rewritten answer keeps its old size", response_bodies, "resized", old_size),
    Planted("ApiVersions goes on as it came", response_bodies, "clamped", as_offered),
    Planted("a request waits in front of older ones", PendingQueue, "append", newest_first),
    Planted("an answer with any id is taken for the oldest request's", responses, "take_later", any_id),
    Planted("equal requests of a read count as one", requests, "count_requests", counts_runs),
    Planted("of equal answers the bytes of one count", Responses, "_count", counts_no_bytes_of_runs),
    Planted("a request that came in two reads loses its last byte", Requests, "taken", loses_last_byte),
    Planted("the last piece of what goes to the broker is lost", requests, "sends", drops_small_tail),
    Planted("the last piece of what goes to the client is lost", responses, "sends", drops_small_tail),
    Planted("acks=0 expects an answer", Connection, "summary_of_request", awaits_all),
    Planted("bytes that are held are never released", Connection, "holds", never_releases),
    Planted("requests that wait for their turn are lost", Requests, "unmute", forgets_unread),
    Planted("bytes that came while a port was bound are lost", Responses, "bound", forgets_blocked),
    Planted("a delay is not kept", Line, "put", forgets_delays),
    Planted("klamm's own answer does not wait for its turn", Connection, "in_turn", out_of_turn),
    Planted("a connection that has to end stays open", Connection, "close", stays_open),
    Planted("the beginning of a last request is lost", Session, "client_closed", without_sends),
    Planted("the beginning of a last answer goes on", Session, "broker_closed", rest_to_client),
    Planted("a connection keeps the rules that it began with", Requests, "_read_again", old_rules),
    Planted("a capture keeps secrets", kept, "edits_of", blanks_nothing),
    Planted("the log tells bodies that do not decode", Undecodable, "__str__", with_the_body),
    Planted("nobody hears of unknown versions", RequestBodies, "_pick_listeners", heard_by_nobody),
    Planted("nobody hears of requests that are not held", RequestBodies, "_pick_listeners", heard_if_whole),
    Planted("nobody hears of requests that get no answer", unanswered, "tell_over", told_to_nobody),
    Planted("a full listener does not learn what it missed", responses, "missed", not_counted),
    Planted("a full listener does not learn what got no answer", unanswered, "missed", not_counted),
    Planted(
        "an answer that no client waits for goes to the client", RuleOrders, "response", swallows_nothing
    ),
    Planted(
        "acks that a rule takes away are not made up for", rule_orders, "broker_answers", never_made_up_for
    ),
    Planted("a rule sets no field of an answer", assign, "edited", not_in_answers),
    Planted("an answer is as before if its length is", ResponsePattern, "matches", same_length),
    Planted("a capture loses the last byte of a long read", Stream, "feed", loses_a_chunk),
)
