"""Figures in the pages are those of the code. That klamm keeps to them is shown by the tests beside them in
docs/promises.md, most of which set smaller ones.
"""

from math import ceil

import pytest

from klamm.captures.storage.scribe import STEADY_S
from klamm.cli.demo.demo import LINE_EVERY_S, WITHOUT_TERMINAL_S
from klamm.dashboards.web.captures.counting import LARGE
from klamm.dashboards.web.columns import VALUES
from klamm.decoders import API
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.proxy.cluster.client_ports.ports import MOST_AHEAD
from klamm.proxy.cluster.client_ports.room import FEW
from klamm.proxy.cluster.client_ports.strays import ANSWERS_S
from klamm.proxy.cluster.cluster import LET_IN_S, REFRESH_S
from klamm.proxy.cluster.nodes.node_states import MOST_TOLD
from klamm.proxy.cluster.nodes.topology_changes import MOST_LINES
from klamm.proxy.cluster.own_requests.broker_watch import GONE_S
from klamm.proxy.cluster.own_requests.held_connections import MOST as MOST_HELD
from klamm.proxy.cluster.own_requests.probe import ANSWER_S, OTHERS_S, PROBE_S
from klamm.proxy.cluster.own_requests.probe import MOST as MOST_PROBED
from klamm.proxy.config import Metrics
from klamm.proxy.control.changes import AT_START
from klamm.proxy.control.following import LOOK_S as TLS_LOOK_S
from klamm.proxy.control.process.handover import READY_S
from klamm.proxy.edge.accepting.acceptor import HEADER_S
from klamm.proxy.edge.accepting.entrance import HANDSHAKE_S
from klamm.proxy.edge.accepting.listener import MOST
from klamm.proxy.log.event_log import EVERY_S
from klamm.proxy.log.file import LOOK_S
from klamm.proxy.session.large_responses import TAIL_LIMIT
from klamm.proxy.session.observing.counters import BOUNDS_NS
from klamm.proxy.session.response_bodies import FIRST_LOOK, TAIL_HELD
from klamm.proxy.traces.parents import MOST as MOST_PARENTS
from klamm.proxy.traces.parents import MOST_BYTES as MOST_BATCH
from klamm.proxy.traces.sending import CUT_S, END_S
from klamm.proxy.traces.sending import MOST as WAITING
from klamm.proxy.traces.sending import MOST_BYTES as WAITING_BYTES
from klamm.proxy.traces.spans import LONGEST
from klamm.replay.playing import Pace
from tests.brokers.jars import ROOT
from tests.brokers.kraft import VERSION
from tests.decoders.hostile import LAYOUTS

WORDS = {1.0: "a second", 2.0: "two seconds", 60.0: "a minute"}
EACH = {1.0: "each second"}
NEWEST = ".".join(VERSION.split(".")[:2])
AT_START_KEYS = [f"`{key}`" for key in AT_START]
FOUND_THERE = 6  # detectors that have findings in the capture of docs/analyze.md
FIGURES = [
    ("docs/web.md", f"beyond {LARGE >> 20} MiB in a process of its own"),
    (
        "README.md",
        f"prints a line every {WORDS[LINE_EVERY_S]}, and ends by itself after {WITHOUT_TERMINAL_S:g} s",
    ),
    ("README.md", f"[{len(DETECTORS)} detectors](docs/detectors.md)"),
    ("README.md", f"{len(DETECTORS)} detectors, from tiny batches"),
    ("CHANGELOG.md", f"captures on Spark, {len(DETECTORS)} detectors with"),
    (
        "docs/analyze.md",
        f"{len(DETECTORS)} detectors looked for problems; {len(DETECTORS) - FOUND_THERE} found nothing.",
    ),
    ("README.md", f"of Kafka 0.8 to {NEWEST}: {len(list(API))} APIs"),
    ("README.md", f"{len(LAYOUTS)} of {len(LAYOUTS)} layouts"),
    ("README.md", f"follows each cluster within {ceil(PROBE_S + ANSWER_S)} s"),
    ("README.md", f"of Kafka 0.9 and older within {REFRESH_S:g} s"),
    ("README.md", f"of more than {MOST_HELD} brokers and of hosts that hang every {REFRESH_S:g} s"),
    ("docs/metrics.md", f"To each broker, of {MOST_HELD} at most"),
    ("docs/metrics.md", f"once it has not been reached for {GONE_S / 60:g} minutes"),
    ("docs/dashboards.md", f"klamm forgets it after {GONE_S / 60:g} minutes"),
    ("docs/web.md", f"the first {VALUES} of them"),
    ("docs/deploy.md", f"are refused for at most {LET_IN_S:g} s"),
    ("docs/protocol-notes.md", f"after {LET_IN_S:g} s clients may come all the same"),
    ("docs/protocol-notes.md", f"in the first {LET_IN_S:g} s after klamm's start"),
    ("docs/sidecar.md", f"in the first {LET_IN_S:g} s after its start"),
    ("docs/metrics.md", f"find that out within {ceil(PROBE_S + ANSWER_S)} s"),
    (
        "docs/metrics.md",
        f"silent for {OTHERS_S:g} s, or refuses connections, others are asked too, {MOST_PROBED} at most",
    ),
    ("docs/configuration.md", f"says where the range ends, of {MOST_AHEAD} ports at most"),
    ("docs/configuration.md", f"({ANSWERS_S:g} s at most)"),
    ("docs/configuration.md", f"allows fewer than {FEW} connections"),
    ("docs/configuration.md", f"are written once {WORDS[EVERY_S]}"),
    ("docs/security.md", f"have {MOST_TOLD:,} nodes of a cluster at most"),
    ("docs/configuration.md", f"{MOST_LINES} lines are written in {WORDS[EVERY_S]}"),
    ("docs/configuration.md", f"klamm opens the path again, within {WORDS[LOOK_S]} while it writes lines"),
    ("docs/deploy.md", f"If it has not after {READY_S:g} s"),
    ("docs/metrics.md", f"an ApiVersions request each {PROBE_S:g} s"),
    ("docs/metrics.md", f"which is not answered within {ANSWER_S:g} s"),
    ("docs/metrics.md", f"and then every {REFRESH_S:g} s"),
    ("docs/metrics.md", f"After the first {Metrics().clients} different ones"),
    ("docs/metrics.md", f"After the first {Metrics().topics} different ones"),
    ("docs/metrics.md", f"until it has taken rows for {STEADY_S:g} s"),
    ("docs/metrics.md", f"{len(BOUNDS_NS) + 3} series for each client"),  # one above all bounds, sum, count
    ("docs/traces.md", f"tries to export what waits, for {END_S + CUT_S:g} s at most"),
    ("docs/traces.md", f"{WAITING:,} exchanges, and {WAITING_BYTES >> 20} MiB, may wait for it"),
    ("docs/traces.md", f"up to {MOST_PARENTS - 1} others, of different traces, are links"),
    ("docs/traces.md", f"up to {MOST_BATCH >> 20} MiB of a batch"),
    ("docs/traces.md", f"is cut to {LONGEST} characters"),
    ("docs/replay.md", f"are asked again for up to {Pace().patience_s:g} s"),
    ("docs/configuration.md", f"| {', '.join(AT_START_KEYS)} | at klamm's next start"),
    ("docs/sidecar.md", f"yes, but for {', '.join(AT_START_KEYS[:-1])} and {AT_START_KEYS[-1]}"),
    ("docs/sidecar.md", f"takes more than {HANDSHAKE_S:g} s is given up"),
    ("docs/sidecar.md", f"the oldest of more than {MOST} at a port"),
    ("docs/sidecar.md", f"missing, wrong or not there within {HEADER_S:g} s ends"),
    ("docs/sidecar.md", f"the oldest of more than {MOST} at a port that wait for their header"),
    ("docs/sidecar.md", f"looks at the files of `listen_tls` {EACH[TLS_LOOK_S]}"),
    ("docs/configuration.md", f"klamm looks at them {EACH[TLS_LOOK_S]}"),
    ("docs/protocol-notes.md", f"an answer of more than {TAIL_HELD >> 10} KiB"),
    ("docs/protocol-notes.md", f"is looked at when {FIRST_LOOK >> 10} KiB of it are there"),
    ("docs/protocol-notes.md", f"is kept back up to {TAIL_LIMIT >> 20} MiB"),
]


@pytest.mark.parametrize(("page", "sentence"), FIGURES)
def test_a_figure_of_a_page_is_that_of_the_code(page: str, sentence: str) -> None:
    assert sentence in " ".join((ROOT / page).read_text().split())
