"""A client and its broker, as they are without klamm: what they wrote, and what has reached them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from klamm.decoders import API
from klamm.decoders.schema import Api
from klamm.rules.plan import UNKNOWN
from tests.simulation.ruling import Fault, Sets

Form = Literal["known", "mangled", "strange", "refused"]


class Kind(NamedTuple):
    """A request that a client may send again: its API, its version, and the draw of its values. `form`:

    known     as the tables have it
    mangled   its body is cut short, or goes on with other bytes
    strange   klamm does not know the API or the version, so the body may be anything
    refused   nor this version, and its answer may carry addresses: klamm does not let it through
    """

    api: Api
    version: int
    draw: int
    form: Form = "known"

    @property
    def unknown(self) -> bool:
        return self.form in ("strange", "refused")

    @property
    def counted_as(self) -> tuple[str, int]:
        """API and version in klamm's counters."""
        return self.api.name if self.api.key in API else UNKNOWN, -1 if self.unknown else self.version


@dataclass(eq=False)
class Asked:
    """A request that a client wrote: `since` when (ns), `start` at which offset of its bytes. `arrived`: the
    broker has it; `answered`: the client has its answer; `own`: that is klamm's. `fault`: of a rule that has
    been there ever since; `may`: what rules may have done to it; `sets`: which fields they may have set, and
    `answer_sets`: in its answer.
    `unacked`: the broker got it with acks=0, which was not so. `token`: it is a raw SASL token, whose
    answer is `reply`.
    """

    number: int
    kind: Kind
    correlation: int
    frame: bytes
    awaited: bool
    since: int
    start: int
    may: set[str] = field(default_factory=set)
    sets: set[Sets] = field(default_factory=set)
    answer_sets: set[Sets] = field(default_factory=set)
    fault: Fault | None = None
    arrived: bool = False
    answered: bool = False
    own: bool = False
    unacked: bool = False
    token: bool = False
    reply: bytes = b""

    def meets(self, fault: Fault | None) -> None:
        """This rule, or none, is there from now on for such frames."""
        if fault is not self.fault:
            self.fault = None
        if fault is not None:
            self.may |= fault.may
            if fault.sets is not None:
                (self.sets if fault.side == "request" else self.answer_sets).add(fault.sets)

    def begins_sasl(self) -> bool:
        """Is it SaslHandshake 0, or a token behind it?"""
        return (self.kind.api.name, self.kind.version) == ("SaslHandshake", 0)

    def __str__(self) -> str:
        return f"{self.kind.api.name} v{self.kind.version} number {self.number} (id {self.correlation})"


class Answer(NamedTuple):
    """An answer that a broker wrote: as it came, and as the client has to get it; None: it is no answer that
    a broker gives, and may come in any way, but without an address. `since`: when it was written (ns).
    `errors`: how many error codes stand in it; None: that cannot be told. `large`: it goes with its length,
    and without addresses. `swallowed`: the client waits for none. `changed`: it with this value of a field.
    """

    asked: Asked
    came: bytes
    goes: bytes | None
    since: int
    errors: int | None
    large: bool
    swallowed: bool = False
    changed: Callable[[Sets], bytes] | None = None


class Peer:
    """Either side. `outgoing`: bytes that klamm has not read yet; `incoming`: bytes of a frame that has not
    come whole; `given`: how many bytes klamm has read.
    """

    def __init__(self) -> None:
        self.outgoing, self.incoming = bytearray(), bytearray()
        self.given = 0
        self.ended = self.end_given = False  # it has sent its last byte; klamm knows
        self.told_end = False  # klamm has told it that the other side has ended
        self.gone = False

    def give(self, count: int) -> bytes:
        """The next bytes for klamm."""
        data = bytes(self.outgoing[:count])
        del self.outgoing[:count]
        self.given += len(data)
        return data

    def frames(self, data: bytes) -> list[bytes]:
        """The frames that are whole with these bytes."""
        self.incoming += data
        found = []
        while len(self.incoming) >= 4:
            size = 4 + int.from_bytes(self.incoming[:4], "big")
            if len(self.incoming) < size:
                break
            found.append(bytes(self.incoming[:size]))
            del self.incoming[:size]
        return found


class Client(Peer):
    """`counts`: its correlation ids count, or are all the same."""

    def __init__(self, client_id: str | None, kinds: list[Kind], first: int, counts: bool) -> None:
        super().__init__()
        self.client_id, self.kinds, self.first, self.counts = client_id, kinds, first, counts
        self.asked: list[Asked] = []

    def gave(self, asked: Asked) -> bool:
        """Has klamm read the whole request?"""
        return asked.start + len(asked.frame) <= self.given

    def next_id(self) -> int:
        number = self.first + (len(self.asked) if self.counts else 0)
        return (number + 2**31) % 2**32 - 2**31


class Broker(Peer):
    def __init__(self) -> None:
        super().__init__()
        self.waiting: deque[Asked] = deque()  # requests that have arrived and want an answer
        self.answers: list[Answer] = []  # in the order in which they were written
