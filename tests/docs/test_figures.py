"""Figures in the pages are those of the code. That klamm keeps to them is shown by the tests beside them in
docs/promises.md, most of which set smaller ones.
"""

import pytest

from klamm.captures.storage.scribe import STEADY_S
from klamm.cli.demo.demo import LINE_EVERY_S, WITHOUT_TERMINAL_S
from klamm.proxy.cluster.cluster import FEW, REFRESH_S
from klamm.proxy.cluster.ports import MOST_AHEAD
from klamm.proxy.cluster.strays import ANSWERS_S
from klamm.proxy.config import Metrics
from klamm.proxy.log.event_log import EVERY_S
from klamm.proxy.log.file import LOOK_S
from klamm.proxy.session.large_responses import TAIL_LIMIT
from klamm.proxy.session.response_bodies import FIRST_LOOK, TAIL_HELD
from tests.brokers.jars import ROOT

WORDS = {1.0: "a second", 2.0: "two seconds", 60.0: "a minute"}
FIGURES = [
    (
        "README.md",
        f"prints a line every {WORDS[LINE_EVERY_S]}, and ends by itself after {WITHOUT_TERMINAL_S:g} s",
    ),
    ("README.md", f"turns to 503 up to {REFRESH_S:g} s after the last broker has died"),
    ("docs/configuration.md", f"says where the range ends, of {MOST_AHEAD} ports at most"),
    ("docs/configuration.md", f"({ANSWERS_S:g} s at most)"),
    ("docs/configuration.md", f"has room for less than {FEW} connections"),
    ("docs/configuration.md", f"are written once {WORDS[EVERY_S]}"),
    ("docs/configuration.md", f"klamm opens that path anew, within {WORDS[LOOK_S]} while it writes lines"),
    ("docs/metrics.md", f"the last look (every {REFRESH_S:g} s, not behind SASL)"),
    ("docs/metrics.md", f"and then every {REFRESH_S:g} s"),
    ("docs/metrics.md", f"After the first {Metrics().clients} different ones"),
    ("docs/metrics.md", f"After the first {Metrics().topics} different ones"),
    ("docs/metrics.md", f"until it has taken rows for {STEADY_S:g} s"),
    ("docs/protocol-notes.md", f"an answer of more than {TAIL_HELD >> 10} KiB"),
    ("docs/protocol-notes.md", f"is looked at when {FIRST_LOOK >> 10} KiB of it are there"),
    ("docs/protocol-notes.md", f"is kept back up to {TAIL_LIMIT >> 20} MiB"),
]


@pytest.mark.parametrize(("page", "said"), FIGURES)
def test_a_figure_of_a_page_is_that_of_the_code(page: str, said: str) -> None:
    assert said in " ".join((ROOT / page).read_text().split())
