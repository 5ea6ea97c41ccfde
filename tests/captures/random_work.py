"""Rows of a capture at random: for what has to be true of any."""

from __future__ import annotations

import random

from klamm.captures.captured import Captured
from tests.captures.rows import Talk, connection, in_time, lost


def random_work(seed: int) -> list[Captured]:
    """Some connections of some clients, in which requests overlap, fail, get no answer, and end."""
    draw = random.Random(seed)
    talks = []
    for number in range(1, 7):
        talk = Talk(
            of=connection(number, run="ab"[number % 2]), client_id=draw.choice(["app", "other", None])
        )
        talk.now_ms = draw.random() * 5
        talk.opened()
        for _ in range(draw.randrange(40)):
            match draw.randrange(5):
                case 0:
                    talk.produce(acks=draw.choice([0, 1, -1]))
                case 1:
                    talk.fetch(took_ms=draw.random() * 500)
                case 2:
                    talk.heartbeat(draw.choice([0, 0, 27, 25]), took_ms=draw.random())
                case 3:
                    talk.metadata()
                case _:
                    talk.request("Heartbeat", 3, {"group_id": "never answered"})
        if draw.random() < 0.5:
            talk.closed()
        talks.append(talk)
    rows = in_time(*talks)
    answers = [place for place, row in enumerate(rows) if row.side == "response"]
    for place in answers[::7]:
        rows[place] = rows[place]._replace(fate="rewritten", forwarded=rows[place].frame)
    rows[3:3] = [lost(5), lost(2, "something else")]
    return rows
