"""A capture of one simulated connection: what it says is compared with what reached the two sides."""

from __future__ import annotations

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.captures.streams.cutting import filled
from klamm.decoders.schema import Side
from klamm.proxy.session.effects import To
from tests.simulation.bodies import PASSWORD
from tests.simulation.judge import SHOWN, Broken

SIDES: dict[To, Side] = {"broker": "request", "client": "response"}


class Capture:
    """It gets the bytes of a connection as klamm's tap does (proxy/edge/tap.py), without a disk behind it."""

    def __init__(self, number: int) -> None:
        connection = CapturedConnection("simulation", number, "test", "1", f"10.0.0.{number}:5000")
        self.reader = ConnectionReader(connection, Keeping("keep"))
        self.rows: list[Captured] = []
        self.ended = False

    def came(self, side: Side, data: bytes, now: int, forwarded: bool) -> None:
        self.rows += self.reader.feed(side, data, now, forwarded)

    def sent(self, to: To, data: bytes, now: int) -> None:
        self.rows += self.reader.sent(SIDES[to], data, now)

    def end(self, now: int, why: str) -> None:
        if not self.ended:
            self.rows += self.reader.end(now, why)
            self.ended = True

    def judge(self, side: Side, got: list[bytes], whole: bool) -> None:
        """`got`: the frames that reached this side's receiver, without their sizes. `whole`: all frames of
        the connection did.
        """
        told = [row for row in self.rows if row.kind == "frame" and row.side == side]
        for row in told:
            if PASSWORD.encode() in b"".join(filter(None, (row.frame, row.forwarded))):
                raise Broken("a secret reaches nothing", f"a capture has one, in a {side} of {row.api_key}")
        went = [row for row in told if row.fate != "withheld"]
        if whole and len(went) != len(got):
            raise Broken("the capture says what was sent", f"{len(went)} {side}s of {len(got)}")
        for row, frame in zip(went, got, strict=False):
            self._compare(row, frame, side)

    def _compare(self, row: Captured, frame: bytes, side: Side) -> None:
        data, blanks = row.frame, row.blanks
        if row.fate == "rewritten":
            data, blanks = row.forwarded, row.forwarded_blanks
        if data is None:
            return
        expected = bytearray(frame)
        for start, size in blanks:
            expected[start : start + size] = bytes(len(expected[start : start + size]))
        if filled(data, blanks) != expected:
            raise Broken(
                "the capture says what was sent",
                f"{row.fate} {side} of API {row.api_key} v{row.api_version}, {data[:SHOWN]!r}: "
                f"{frame[:SHOWN]!r} was sent",
            )
