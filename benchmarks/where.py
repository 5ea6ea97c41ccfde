"""Conditions of rules on a Metadata response of about 27 KB, against reading all of it."""

import statistics
import timeit
from functools import partial
from typing import Any

from benchmarks.decoding import decode_bodies
from klamm.decoders import API, decode
from klamm.rules.expressions import parse
from klamm.rules.frame import Frame, Peer

TARGET = 0.1  # of the full read
VERSION = 12
CONDITIONS = (
    'controller_id == 1 and cluster_id == "klamm-bench-cluster-01"',
    "any(b.node_id == 5 for b in brokers)",
    "not any(b.node_id == 5 for b in brokers) and all(b.port == 9092 for b in brokers)",
)


def run(rounds: int = 7, calls: int = 100) -> list[dict[str, Any]]:
    """A row for each condition: median microseconds, and the share of the full read's in the same round."""
    body, metadata = decode_bodies.metadata(3), API["Metadata"]
    frame = Frame(metadata, VERSION, "response", body, "bench", Peer("", "0", "127.0.0.1:1", "bench"), 0)
    rows = []
    for text in CONDITIONS:
        holds = parse(text).on(metadata, VERSION, "response")
        if holds(frame) is None:
            raise AssertionError(f"{text} is unknown")
        asked = timeit.Timer(partial(holds, frame))
        read = timeit.Timer(lambda: decode(body, metadata.key, VERSION, "response"))
        pairs = [(asked.timeit(calls) / calls, read.timeit(calls) / calls) for _ in range(rounds)]
        rows.append(
            {
                "name": text,
                "bytes": len(body),
                "median_us": statistics.median(one for one, _ in pairs) * 1e6,
                "full_us": statistics.median(full for _, full in pairs) * 1e6,
                "ratio": statistics.median(one / full for one, full in pairs),
                "target": TARGET,
            }
        )
    return rows
