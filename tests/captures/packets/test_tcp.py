"""Segments to streams: whatever happens to them, the bytes are those that were sent, or a hole says so."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.packets.tcp import FAR_BYTES, HELD_BYTES, PATIENCE, UNKNOWN, Assembly, Piece
from klamm.captures.packets.tcp_segments import ACK, FIN, RST, SYN, Segment

CLIENT, BROKER = 0, 1
MS = 1_000_000


class Talk:
    """Makes the segments of a connection, with numbers that soon wrap."""

    def __init__(self, *first: int) -> None:
        self.next = list(first or (0xFFFFFF00, 0xFFFFFFF0))
        self.time_ns = 0
        self.made: list[tuple[int, Segment]] = []

    def say(self, way: int, data: bytes, flags: int = ACK, size: int | None = None) -> Segment:
        self.time_ns += MS
        size = len(data) if size is None else size
        numbers = self.next[way] & 0xFFFFFFFF, self.next[1 - way] & 0xFFFFFFFF
        self.made.append((way, Segment(self.time_ns, b"", *numbers, flags, data, size)))
        self.next[way] += size + bool(flags & (SYN | FIN))
        return self.made[-1][1]

    def open(self) -> Talk:
        self.say(CLIENT, b"", SYN)
        self.say(BROKER, b"", SYN | ACK)
        self.say(CLIENT, b"")
        return self

    def close(self) -> Talk:
        for way in (CLIENT, BROKER):
            self.say(way, b"", FIN | ACK)
        self.say(CLIENT, b"")
        return self


def pieces_of(made: list[tuple[int, Segment]], assembly: Assembly | None = None) -> list[Piece]:
    assembly = assembly or Assembly()
    pieces = [piece for way, segment in made for piece in assembly.take(way, segment)]
    return pieces + assembly.rest()


def streams(pieces: list[Piece]) -> tuple[bytes, bytes]:
    """Both ways, a hole of 2 bytes as `<2>`."""
    ways = [b"", b""]
    for piece in pieces:
        ways[piece.way] += piece.data + (b"<%d>" % piece.missing if piece.missing else b"")
    return ways[0], ways[1]


def test_what_comes_in_order_is_said_at_once_with_its_own_time() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"ask")
    talk.say(BROKER, b"answer")
    assembly = Assembly()
    assert [assembly.take(*made) for made in talk.made[3:]] == [
        [Piece(CLIENT, b"ask", 4 * MS)],
        [Piece(BROKER, b"answer", 5 * MS)],
    ]
    assert assembly.client is None
    assert not assembly.began


def test_the_client_is_who_opened_whichever_of_its_two_first_segments_is_there() -> None:
    talk = Talk().open()
    for first, client in ((0, 0), (1, 0)):
        assembly = Assembly()
        way = talk.made[first][0]
        for made_way, segment in talk.made[first:]:
            assembly.take(int(made_way != way), segment)
        assert assembly.client == (client if way == CLIENT else 1 - client)


@given(st.data())
def test_reordering_repeating_and_cutting_otherwise_gives_the_same_streams(data: st.DataObject) -> None:
    talk = Talk(*(data.draw(st.integers(0, 0xFFFFFFFF)) for _ in range(2))).open()
    chunks = data.draw(st.lists(st.tuples(st.integers(0, 1), st.binary(min_size=1, max_size=9)), max_size=15))
    streamed = [b"", b""]
    for way, words in chunks:
        talk.say(way, words)
        streamed[way] += words
    handshake, sent, ending = talk.made[:3], talk.made[3:], talk.close().made[3 + len(chunks) :]
    again = []
    for way, segment in sent:  # a part of the stream, cut otherwise
        if data.draw(st.booleans()):
            first = data.draw(st.integers(0, len(streamed[way]) - 1))
            part = streamed[way][first : data.draw(st.integers(first + 1, len(streamed[way])))]
            sequence = handshake[way][1].sequence + 1 + first & 0xFFFFFFFF
            again.append((way, segment._replace(sequence=sequence, data=part, size=len(part))))
    assert len(sent) + len(again) < PATIENCE
    assembly = Assembly()
    pieces = pieces_of([*handshake, *data.draw(st.permutations(sent + again)), *ending], assembly)
    assert streams(pieces) == tuple(streamed)
    assert [piece.time_ns for piece in pieces] == sorted(piece.time_ns for piece in pieces)
    assert assembly.ended == ("closed", CLIENT)
    assert assembly.held_bytes == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_long_stream_whose_neighbours_change_places_is_the_same(seed: int) -> None:
    random = Random(seed)
    talk = Talk().open()
    expected = [b"", b""]
    for number in range(600):
        way, words = random.randrange(2), b"%d," % number
        talk.say(way, words)
        expected[way] += words
    order = sorted(range(3, len(talk.made)), key=lambda number: number + random.uniform(0, 12))
    assert streams(pieces_of(talk.made[:3] + [talk.made[number] for number in order])) == tuple(expected)


def test_an_answer_does_not_come_before_the_question_that_was_captured_after_it() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"ask")
    talk.say(BROKER, b"answer")
    mixed = [*talk.made[:3], talk.made[4], talk.made[3]]
    pieces = pieces_of(mixed)
    assert [piece.data for piece in pieces] == [b"ask", b"answer"]


def test_a_segment_that_was_never_captured_is_a_hole_at_its_place_and_time() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"one")
    talk.say(CLIENT, b"two..")
    for number in range(40):
        talk.say(CLIENT, b"more")
        talk.say(BROKER, b"%d" % number)
    lost = talk.made.pop(4)[1]
    assembly = Assembly()
    first = [piece for way, segment in talk.made[:30] for piece in assembly.take(way, segment)]
    assert [piece.data for piece in first] == [b"one"]
    rest = [piece for way, segment in talk.made[30:] for piece in assembly.take(way, segment)]
    assert rest[0] == Piece(CLIENT, b"", lost.time_ns + MS, missing=5)
    assert streams(first + rest)[0] == b"one<5>" + b"more" * 40
    assert streams(rest)[1] == b"".join(b"%d" % number for number in range(40))


def test_a_lost_question_is_a_hole_before_its_answer() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"ask")
    talk.say(BROKER, b"answer")
    del talk.made[3]
    assert pieces_of(talk.made) == [Piece(CLIENT, b"", 5 * MS, missing=3), Piece(BROKER, b"answer", 5 * MS)]


def test_a_lost_question_is_given_up_after_a_while() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"ask")
    answer = talk.say(BROKER, b"answer")
    talk.time_ns += 2000 * MS
    talk.say(CLIENT, b"ask again")
    del talk.made[3]
    assembly = Assembly()
    pieces = [piece for made in talk.made for piece in assembly.take(*made)]
    assert streams(pieces) == (b"<3>ask again", b"answer")
    assert pieces[1].time_ns == answer.time_ns


def test_what_was_acknowledged_and_never_seen_at_the_end_is_a_hole() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"ask")
    talk.say(BROKER, b"")
    del talk.made[3]
    assert streams(pieces_of(talk.made)) == (b"<3>", b"")


def test_a_hole_that_nobody_acknowledged_waits_for_the_segment_to_be_sent_again() -> None:
    talk = Talk().open()
    lost = talk.say(CLIENT, b"first")
    for _ in range(PATIENCE * 3):
        talk.say(CLIENT, b"x" * 100)
    made = [(way, segment) for way, segment in talk.made if segment is not lost]
    resent = lost._replace(time_ns=made[-1][1].time_ns + MS)
    pieces = pieces_of([*made, (CLIENT, resent)])
    assert streams(pieces)[0] == b"first" + b"x" * 300 * PATIENCE
    assert {piece.time_ns for piece in pieces} == {resent.time_ns}


def test_what_is_kept_while_waiting_is_limited() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"never seen")
    del talk.made[3]
    large = b"x" * 65_000
    assembly = Assembly()
    for made in talk.made:
        assembly.take(*made)
    for _ in range(2 * HELD_BYTES // len(large)):
        talk.say(CLIENT, large)
        if pieces := assembly.take(*talk.made[-1]):
            break
    assert pieces[0].missing == len(b"never seen")
    assert assembly.held_bytes == 0


def test_a_segment_that_the_capture_cut_is_followed_by_a_hole() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"begin", size=12)
    talk.say(CLIENT, b"next")
    assert streams(pieces_of(talk.made))[0] == b"begin<7>next"


def test_a_connection_that_began_before_the_capture_is_heard_from_its_first_segments_on() -> None:
    talk = Talk().open()
    for _ in range(3):
        talk.say(CLIENT, b"ask")
        talk.say(BROKER, b"answer")
    assembly = Assembly()
    assert streams(pieces_of(talk.made[5:], assembly)) == (b"ask" * 2, b"answer" * 2)
    assert assembly.client is None


def test_one_direction_alone_is_heard() -> None:
    talk = Talk().open()
    for _ in range(50):
        talk.say(CLIENT, b"ask")
        talk.say(BROKER, b"answer")
    talk.close()
    for way, expected in ((CLIENT, b"ask" * 50), (BROKER, b"answer" * 50)):
        assembly = Assembly()
        half = [(0, segment) for made_way, segment in talk.made if made_way == way]
        assert streams(pieces_of(half, assembly))[0] == expected
        assert assembly.ended == ("closed", 0)
        assert assembly.client == way


def test_probes_that_keep_a_connection_alive_say_nothing() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"ask")
    probe = talk.made[-1][1]
    for data in (b"", b"?"):
        before = (probe.sequence + 2) & 0xFFFFFFFF
        talk.made.append((CLIENT, probe._replace(sequence=before, data=data, size=len(data))))
    talk.say(CLIENT, b"more")
    assert streams(pieces_of(talk.made))[0] == b"askmore"


def test_the_end_says_who_closed_first_or_reset() -> None:
    talk = Talk().open()
    talk.say(BROKER, b"bye", FIN | ACK)
    talk.say(CLIENT, b"", FIN | ACK)
    assembly = Assembly()
    assert streams(pieces_of(talk.made, assembly))[1] == b"bye"
    assert assembly.ended == ("closed", BROKER)

    talk = Talk().open()
    talk.say(CLIENT, b"", RST)
    assembly = Assembly()
    pieces_of(talk.made, assembly)
    assert assembly.ended == ("reset", CLIENT)


def test_a_connection_with_a_hole_ends_with_its_last_segments() -> None:
    talk = Talk().open()
    talk.say(CLIENT, b"never seen")
    talk.say(BROKER, b"answer")
    talk.close()
    del talk.made[3]
    assembly = Assembly()
    pieces = [piece for made in talk.made for piece in assembly.take(*made)]
    assert streams(pieces) == (b"<10>", b"answer")
    assert assembly.ended == ("closed", CLIENT)


def test_a_new_handshake_on_the_same_ports_is_another_connection() -> None:
    talk = Talk(1000, 2000).open()
    talk.say(CLIENT, b"ask")
    assembly = Assembly()
    pieces_of(talk.made, assembly)
    opening = talk.made[0][1]
    assert not assembly.is_another(CLIENT, opening)
    assert assembly.is_another(CLIENT, opening._replace(sequence=77_000))
    assert not assembly.is_another(CLIENT, talk.say(CLIENT, b"more"))
    reset = talk.say(CLIENT, b"", RST)
    assembly.take(CLIENT, reset)
    assert not assembly.is_another(CLIENT, opening)  # a copy that comes late, of a mirror for example
    assert assembly.is_another(CLIENT, opening._replace(sequence=77_000))
    assert not assembly.is_another(BROKER, talk.made[1][1]._replace(flags=ACK))


def test_quite_other_numbers_are_a_hole_of_unknown_size_on_both_ways() -> None:
    talk = Talk(1000, 2000).open()
    talk.say(CLIENT, b"ask")
    talk.say(BROKER, b"answer")
    talk.next = [1000 + FAR_BYTES * 3, 2000 + FAR_BYTES * 5]
    talk.say(CLIENT, b"new")
    talk.say(BROKER, b"one")
    expected = (b"ask<%d>new" % UNKNOWN, b"answer<%d>one" % UNKNOWN)
    assert streams(pieces_of(talk.made)) == expected


def fast_opened(sent: bytes, acknowledged: int, answer: bytes = b"") -> Talk:
    """A handshake with data in both SYNs (RFC 7413); the broker acknowledges so many bytes of the client."""
    talk = Talk().open()
    del talk.made[:]
    first = talk.next[CLIENT]
    talk.next = [first - 1, talk.next[BROKER] - 1]
    talk.say(CLIENT, sent, SYN)
    talk.next[CLIENT] = first + acknowledged
    talk.say(BROKER, answer, SYN | ACK)
    talk.say(CLIENT, b"")
    return talk


def test_data_in_the_syn_and_in_its_answer_is_a_part_of_the_streams() -> None:
    talk = fast_opened(b"ask", 3, b"answer")
    talk.say(CLIENT, b" more")
    talk.say(BROKER, b"s")
    assembly = Assembly()
    assert streams(pieces_of(talk.close().made, assembly)) == (b"ask more", b"answers")
    assert (assembly.client, assembly.ended, assembly.repeated) == (CLIENT, ("closed", CLIENT), 0)
    assert assembly.began


def test_the_data_of_a_syn_that_the_broker_did_not_take_is_there_once() -> None:
    talk = fast_opened(b"ask", 0)
    talk.say(CLIENT, b"ask")
    talk.say(BROKER, b"answer")
    assert streams(pieces_of(talk.made)) == (b"ask", b"answer")


@pytest.mark.parametrize("again", [b"ask", b""], ids=["with the data", "without it"])
def test_a_syn_that_is_sent_again_changes_nothing(again: bytes) -> None:
    talk = fast_opened(b"ask", 3)
    talk.say(BROKER, b"answer")
    syn = talk.made[0][1]
    for place in (1, 3, len(talk.made)):
        copy = syn._replace(data=again, size=len(again))
        made = [*talk.made[:place], (CLIENT, copy), *talk.made[place:]]
        assembly = Assembly()
        assert not assembly.is_another(CLIENT, copy)
        assert streams(pieces_of(made, assembly)) == (b"ask", b"answer")
        assert not assembly.is_another(CLIENT, copy)


def test_a_syn_with_data_that_was_captured_after_its_answer_is_read() -> None:
    talk = fast_opened(b"ask", 3)
    talk.say(BROKER, b"answer")
    syn, accepted, *rest = talk.made
    assembly = Assembly()
    pieces = assembly.take(1 - CLIENT, accepted[1])
    assert not assembly.is_another(CLIENT, syn[1])
    pieces += pieces_of([syn, *rest], assembly)
    assert streams(pieces) == (b"ask", b"answer")
    assert assembly.client == CLIENT
    assert assembly.began
