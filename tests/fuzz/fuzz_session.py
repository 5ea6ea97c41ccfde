"""Coverage-guided: any bytes from a client and from a broker, in pieces, through a connection."""

from collections.abc import Iterator

import atheris

from tests.fuzz.libfuzzer import run

with atheris.instrument_imports(include=["klamm.proxy.session", "klamm.decoders"]):
    from klamm.proxy.session.effects import Close, Cut, Event
    from klamm.proxy.session.session import Session
    from klamm.rules.engine import Engine
    from klamm.rules.plan import Wishes
    from tests.proxy import traffic
    from tests.proxy.ruling.ruled import act, rule

LONGEST = 127  # bytes of a piece
Pieces = list[tuple[int, bytes]]  # side, 0 is the client's: the lowest bit of the byte in front; and bytes
WISHES = (Wishes(), Wishes("header"), Wishes("full", None))  # by the first byte; beyond them come rules
RULES = (
    rule(act("error", 6), api="Produce"),
    rule(act("set", {"max_wait_ms": "77"}), api="Fetch"),
    rule(act("set", {"controller_id": "7"}), api="Metadata", side="response"),
    rule(act("delay", 5), name="late", side="response"),
    rule(act("drop"), api="Heartbeat"),
    rule(act("pause"), api="JoinGroup", side="response"),
)


def one_input(data: bytes) -> None:
    """A broker gets what its client sent, where no rules are. Where klamm has nothing to say about the bytes,
    their cuts make no difference but in how much of a frame has gone on.
    """
    of, cut = data[0] if data else 0, pieces(data[1:])
    one = played(cut, of)
    if of >= len(WISHES):
        return
    sent = b"".join(piece for side, piece in cut if side == 0)
    assert sent.startswith(one.broker), "a broker gets something else than its client sent"
    other = played(joined(cut), of)
    if not any(isinstance(event, Event | Close) for event in (*one.events, *other.events)):
        assert one.broker[: len(other.broker)] == other.broker[: len(one.broker)], "cuts change requests"
        assert one.client[: len(other.client)] == other.client[: len(one.client)], "cuts change answers"


def pieces(data: bytes) -> Pieces:
    found, at = [], 0
    while at < len(data):
        side, length = data[at] & 1, data[at] >> 1
        found.append((side, data[at + 1 : at + 1 + length]))
        at += 1 + length
    return [(side, piece) for side, piece in found if piece]


def joined(cut: Pieces) -> Pieces:
    """Pieces of the same side, one behind the other, as one."""
    found: Pieces = []
    for side, piece in cut:
        if found and found[-1][0] == side:
            found[-1] = side, found[-1][1] + piece
        else:
            found.append((side, piece))
    return found


def played(cut: Pieces, of: int) -> traffic.Outcome:
    """Until the connection ends."""
    at = traffic.ground(WISHES[of % len(WISHES)])
    if of >= len(WISHES):
        at.engine = Engine(1)
        at.engine.load(RULES, 0)
    session = Session(at, "1", traffic.ADVERTISE)
    edge = traffic.Recorder(session, at, traffic.Outcome())
    for side, piece in cut:
        if any(isinstance(event, Close | Cut) for event in edge.outcome.events):
            break
        if side == 0:
            edge.take("broker", session.from_client(piece, 0), piece)
        else:
            edge.take("client", session.from_broker(piece, 0), piece)
    return edge.outcome


def seeds() -> Iterator[tuple[str, bytes]]:
    made = {
        "metadata": [traffic.metadata(version) for version in (1, 9, 12)],
        "produce": [traffic.produce(3, 1), traffic.produce(9, 2, acks=0), traffic.produce(9, 3)],
        "fetch": [traffic.fetch(4, 1), traffic.fetch(12, 2)],
    }
    made["sasl"] = [
        traffic.exchange("SaslHandshake", 0, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]}),
        traffic.Exchanged(b"\0\0\0\x08\0user\0pw", bytes(4)),
        traffic.metadata(1, 2),
    ]
    made["all"] = [one for some in made.values() for one in some]
    for name, some in made.items():
        yield name, bytes(1) + b"".join(told(0, one.request) + told(1, one.answer or b"") for one in some)
        together = told(0, b"".join(one.request for one in some))
        yield f"{name}-in-a-row", b"\1" + together + told(1, b"".join(one.answer or b"" for one in some))


def told(side: int, data: bytes) -> bytes:
    """In pieces, each with the byte in front of it."""
    cut = [data[at : at + LONGEST] for at in range(0, len(data), LONGEST)]
    return b"".join(bytes([len(piece) << 1 | side]) + piece for piece in cut)


if __name__ == "__main__":
    run(one_input, seeds())
