"""What holds whatever happens, judged frame by frame as bytes reach a client or a broker."""

from __future__ import annotations

from typing import Any

from klamm.decoders.headers import request_frame, response_header_version
from klamm.decoders.schema import Side
from tests.simulation.bodies import request
from tests.simulation.nodes import DOMAIN
from tests.simulation.peers import Answer, Asked, Broker, Client
from tests.simulation.ruling import CODE, DELAY_NS, Sets

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
        asked, sets = self._same_request(frame)
        asked.arrived = True
        self.passed += 0 if asked.own else len(asked.frame)
        if asked.kind.form == "refused":
            raise Broken("no request whose answer may carry addresses goes on unread", f"{asked}")
        if not asked.token:
            self.at_broker.append(frame[4:])
        asked.unacked = sets == ("acks", 0) and asked.awaited
        if sets == ("acks", 1) or (asked.awaited and not asked.unacked):
            self.broker.waiting.append(asked)
        must = self._must(asked, "request", asked.frame)
        if "changed" in must and sets is None:
            raise Broken("a rule that is there acts", f"{asked} was not changed")
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
        """The faults that a rule on this side must have put into this frame, which is a request or the answer
        to it.
        """
        fault = asked.fault
        there = fault is not None and fault.side == side and len(frame) <= self.most
        return fault.must if fault is not None and there else frozenset()

    def _same_request(self, frame: bytes) -> tuple[Asked, Sets | None]:
        """The request that this is: the next one, but for those that rules kept from the broker; and which
        field a rule has set in it.
        """
        for number in range(self.next_asked, len(self.client.asked)):
            asked = self.client.asked[number]
            for sets in (*sorted(asked.sets), None):
                if frame == (asked.frame if sets is None else self._changed(asked, sets)):
                    self.next_asked = number + 1
                    return asked, sets
            if not asked.may & GONE:
                raise Broken(
                    "requests reach the broker as they were written, in their order",
                    f"{asked} is {asked.frame[:SHOWN]!r}, {len(asked.frame)} bytes; "
                    f"the broker got {frame[:SHOWN]!r}, {len(frame)} bytes",
                )
        raise Broken("a broker gets what a client wrote, once", f"{frame[:SHOWN]!r} was not written")

    def _changed(self, asked: Asked, sets: Sets) -> bytes:
        api, version, draw, _ = asked.kind
        body = request(api, version, draw, sets).body
        return request_frame(api, version, asked.correlation, self.client.client_id, body)

    def _response(self, frame: bytes, now: int) -> None:
        answers = self.broker.answers
        while self.next_answer < len(answers) and answers[self.next_answer].swallowed:
            self.passed += len(answers[self.next_answer].came)
            self.next_answer += 1
        at = self.next_answer
        answer = answers[at] if at < len(answers) else None
        if answer is not None and (answer.goes == frame or _is_changed(answer, frame)):
            self._take(answer, frame, now)
        elif (own := self._own_answer(frame)) is not None:
            self.passed += 0 if own.arrived else len(own.frame)
            own.answered = own.own = True
            self.at_client.append(frame[4:])
        elif answer is not None and self._may_differ(answer) and frame[4:8] == answer.came[4:8]:
            self._take(answer, frame, now)
        else:
            self._refuse(frame, answer)

    def _may_differ(self, answer: Answer) -> bool:
        is_odd = answer.changed is None and bool(answer.asked.answer_sets)  # it may be read all the same
        return answer.goes is None or "answered" in answer.asked.may or is_odd

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
        if "changed" in must and answer.changed is not None and asked.fault is not None:
            self._must_be_changed(answer, asked.fault.sets, frame)
        refused = "answered" in must and asked.kind.api.name in SURE
        if refused and answer.goes == frame and answer.errors is not None:  # else it cannot be read
            raise Broken("a rule that is there acts", f"the answer to {asked} has no error")

    def _must_be_changed(self, answer: Answer, sets: Sets | None, frame: bytes) -> None:
        assert answer.changed is not None
        assert sets is not None
        if frame != answer.changed(sets):
            raise Broken("a rule that is there acts", f"the answer to {answer.asked} was not changed")

    def _own_answer(self, frame: bytes) -> Asked | None:
        """The request that klamm answers by itself: the next one without an answer, not at the broker."""
        for asked in self.client.asked:
            if not asked.awaited or asked.answered:
                continue
            if not _has_id(frame, asked.correlation):
                return None
            if asked.unacked or (not asked.arrived and ("acks", 0) in asked.sets):
                return asked
            is_own = not asked.arrived and "answered" in asked.may
            return asked if is_own and ("cut" in asked.may or _has_code(frame, asked)) else None
        return None


def _is_changed(answer: Answer, frame: bytes) -> bool:
    """Is it the answer with a field that a rule may have set?"""
    changed = answer.changed
    return changed is not None and any(changed(sets) == frame for sets in sorted(answer.asked.answer_sets))


def _has_id(frame: bytes, correlation: int) -> bool:
    return frame[4:8] == correlation.to_bytes(4, "big", signed=True)


def _has_code(frame: bytes, asked: Asked) -> bool:
    start = 8 + response_header_version(asked.kind.api, asked.kind.version)
    return CODE.to_bytes(2, "big") in frame[start:]
