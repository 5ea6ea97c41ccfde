"""What holds whatever happens, judged frame by frame as bytes reach a client or a broker."""

from __future__ import annotations

from typing import Any

from klamm.decoders.headers import response_header_version
from klamm.decoders.schema import Side
from tests.simulation.bodies import request
from tests.simulation.nodes import DOMAIN
from tests.simulation.peers import Answer, Asked, Broker, Client
from tests.simulation.ruling import CODE, DELAY_NS

MARK = DOMAIN.encode()
GONE = {"answered", "dropped", "cut"}  # faults after which a broker may never have seen a request
SURE = ("Heartbeat", "JoinGroup")  # klamm answers these itself where a rule asks for an error
SHOWN = 60  # bytes of a frame in a message


class Broken(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant


class Judge:
    """Of one connection. `next_asked`: requests before it have reached the broker, or never will. `most`:
    bytes of a frame on which rules act.
    """

    def __init__(self, client: Client, broker: Broker, most: int) -> None:
        self.client, self.broker, self.most = client, broker, most
        self.next_asked = 0
        self.next_answer = 0
        self.passed = 0  # bytes of the requests and answers that have gone on, or that klamm answered itself
        self.tail = b""  # the last bytes that the client got
        self.at_broker: list[bytes] = []  # frames, without their sizes, and without SASL tokens
        self.at_client: list[bytes] = []

    def reached_broker(self, data: bytes, now: int) -> None:
        for frame in self.broker.frames(data):
            self._request(frame, now)

    def reached_client(self, data: bytes, now: int) -> None:
        seen = self.tail + data
        if MARK in seen:
            at = seen.index(MARK)
            raise Broken("no address of a broker reaches a client", repr(seen[max(0, at - 20) : at + 20]))
        self.tail = seen[1 - len(MARK) :]
        for frame in self.client.frames(data):
            self._response(frame, now)

    def _request(self, frame: bytes, now: int) -> None:
        asked = self._same_request(frame)
        asked.arrived = True
        self.passed += len(frame)
        if asked.kind.form == "refused":
            raise Broken("no request whose answer may carry addresses goes on unread", f"{asked}")
        if not asked.token:
            self.at_broker.append(frame[4:])
        if asked.awaited:
            self.broker.waiting.append(asked)
        must = self._must(asked, "request", frame)
        if "late request" in must and now < asked.since + DELAY_NS:
            raise Broken("a rule that is there acts", f"{asked} was not delayed")
        refused = "answered" in must and asked.kind.api.name in SURE
        if refused or must & {"dropped", "cut"}:
            raise Broken("a rule that is there acts", f"{asked} reached the broker")

    def told(self, fields: dict[str, Any]) -> None:
        """klamm tells the log or a listener of an exchange: in the name of the group or the transactional id
        of its own request.
        """
        if not self.client.counts:
            return
        asked = next(each for each in self.client.asked if each.correlation == fields["correlation_id"])
        if asked.kind.form != "known":
            return
        for name, value in request(asked.kind.api, asked.kind.version, asked.kind.draw).named.items():
            if value is not None and fields.get(name) != value:
                raise Broken(
                    "an exchange is told as it was", f"{name} of {asked}: {fields.get(name)!r}, not {value!r}"
                )

    def _must(self, asked: Asked, side: Side, frame: bytes) -> frozenset[str]:
        """What a rule on this side must have done to a request, or to its answer: this frame."""
        fault = asked.fault
        there = fault is not None and fault.side == side and len(frame) <= self.most
        return fault.must if fault is not None and there else frozenset()

    def _same_request(self, frame: bytes) -> Asked:
        """The request that this is: the next one, but for those that rules kept from the broker."""
        for number in range(self.next_asked, len(self.client.asked)):
            asked = self.client.asked[number]
            if asked.frame == frame:
                self.next_asked = number + 1
                return asked
            if not asked.may & GONE:
                raise Broken(
                    "requests reach the broker as they were written, in their order",
                    f"{asked} is {asked.frame[:SHOWN]!r}, {len(asked.frame)} bytes; "
                    f"the broker got {frame[:SHOWN]!r}, {len(frame)} bytes",
                )
        raise Broken("a broker gets what a client wrote, once", f"{frame[:SHOWN]!r} was not written")

    def _response(self, frame: bytes, now: int) -> None:
        answers, at = self.broker.answers, self.next_answer
        answer = answers[at] if at < len(answers) else None
        if answer is not None and answer.goes == frame:
            self._take(answer, frame, now)
        elif (own := self._own_answer(frame)) is not None:
            own.answered = own.own = True
            self.passed += len(own.frame)
            self.at_client.append(frame[4:])
        elif answer is not None and self._may_differ(answer) and frame[4:8] == answer.came[4:8]:
            self._take(answer, frame, now)
        else:
            self._refuse(frame, answer)

    def _may_differ(self, answer: Answer) -> bool:
        return answer.goes is None or "answered" in answer.asked.may

    def _refuse(self, frame: bytes, answer: Answer | None) -> None:
        if answer is None:
            raise Broken("each request is answered once", f"{frame[:SHOWN]!r} answers nothing")
        goes = answer.goes or answer.came
        differs = next((at for at, (a, b) in enumerate(zip(goes, frame, strict=False)) if a != b), -1)
        raise Broken(
            "answers reach the client as the broker wrote them, in their order, but for addresses",
            f"to {answer.asked}, from byte {differs} on: {goes[max(0, differs - 8) : differs + SHOWN]!r}, "
            f"{len(goes)} bytes; the client got {frame[max(0, differs - 8) : differs + SHOWN]!r}, "
            f"{len(frame)} bytes",
        )

    def _take(self, answer: Answer, frame: bytes, now: int) -> None:
        self.next_answer += 1
        self.passed += len(answer.came)
        asked = answer.asked
        if answer.large and len(frame) != len(answer.came) and "answered" not in asked.may:
            raise Broken(
                "a large answer keeps its length", f"{len(frame)} bytes of {len(answer.came)}: {asked}"
            )
        if asked.answered:
            raise Broken("each request is answered once", f"{asked} twice")
        asked.answered = True
        if not asked.token:
            self.at_client.append(frame[4:])
        must = self._must(asked, "response", answer.came)
        if "dropped" in must:
            raise Broken("a rule that is there acts", f"the answer to {asked} was not dropped")
        if "late answer" in must and now < answer.since + DELAY_NS:
            raise Broken("a rule that is there acts", f"the answer to {asked} was not delayed")
        refused = "answered" in must and asked.kind.api.name in SURE
        if refused and answer.goes == frame and answer.errors is not None:  # else it cannot be read
            raise Broken("a rule that is there acts", f"the answer to {asked} has no error")

    def _own_answer(self, frame: bytes) -> Asked | None:
        """The request that klamm answers by itself: the next one without an answer, not at the broker."""
        for asked in self.client.asked:
            if not asked.awaited or asked.answered:
                continue
            is_own = not asked.arrived and "answered" in asked.may and _has_id(frame, asked.correlation)
            return asked if is_own and ("cut" in asked.may or _has_code(frame, asked)) else None
        return None


def _has_id(frame: bytes, correlation: int) -> bool:
    return frame[4:8] == correlation.to_bytes(4, "big", signed=True)


def _has_code(frame: bytes, asked: Asked) -> bool:
    start = 8 + response_header_version(asked.kind.api, asked.kind.version)
    return CODE.to_bytes(2, "big") in frame[start:]
