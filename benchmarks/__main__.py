"""proxies: klamm beside HAProxy (the default). peers: beside Toxiproxy too, and pumps that only carry bytes.
tls: proxies with TLS on both sides, and handshakes. connections: many idle ones, and many new ones in a
second. decode: the decoders. rules: klamm with rules and without. workers: klamm with two workers beside
klamm in one process, on one core and on all. live: klamm while somebody reads its live stream. web: the
page of klamm web in Chromium. capture: while it captures. show: captures summed up, beside tshark.
pipeline: captures on Spark, beside tshark. end-to-end: the latency of a record from a producer to a
consumer, through real brokers. hostile: klamm under attack. sizing: cores by requests and bytes. check: are
the frames valid?
"""

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import measure, page, peers, proxies, where
from benchmarks.peer import Lost
from benchmarks.traffic import frames, workloads

KINDS = (
    "proxies", "peers", "tls", "connections", "decode", "rules", "workers", "live", "web", "capture", "show",
    "pipeline", "end-to-end", "hostile", "sizing", "check",
)  # fmt: skip
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=KINDS, default=KINDS[0])
    parser.add_argument("--quick", action="store_true", help="about a minute: for a look, not for a claim")
    parser.add_argument(
        "--only", default=",".join(peers.NAMES), metavar="PEER,...", help="some of %(default)s"
    )
    parser.add_argument("--rounds", type=int, help="how often each row is measured")
    parser.add_argument("--seconds", type=float, help="how long, of connections and of each hostile attack")
    parser.add_argument("--capture", type=Path, help="a large one, for web: the time until it is open")
    parser.add_argument("--rows", default="", metavar="TEXT", help='some rows: "Fetch", "Fetch 200 B 4 x 16"')
    parser.add_argument("--out", type=Path, help="where the JSON goes (benchmarks/results/WHAT.json)")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    try:
        return _measure(parser, options, console)
    except Lost as error:
        console.print(error, markup=False, style="red")
        return 1


def _measure(parser: argparse.ArgumentParser, options: argparse.Namespace, console: Console) -> int:
    """Run what was asked, and write what it has measured. Raises Lost."""
    out: Path = options.out or RESULTS / f"{options.what}.json"
    if options.what == "check":
        from benchmarks import check

        console.print(check.check())
        return 0
    if options.what == "decode":
        from benchmarks.decoding import decode

        result, failed = decode.run(console, quick=options.quick), False
    elif options.what == "show":
        from benchmarks import show

        result, failed = show.run(console, options.rounds or show.ROUNDS, options.quick), False
    elif options.what == "pipeline":
        from benchmarks import pipeline

        result, failed = pipeline.run(console, options.quick), False
    elif options.what == "web":
        from benchmarks import web

        result, failed = web.run(console, (options.seconds or 60 * web.MINUTES) / 60, options.capture), False
    elif options.what == "hostile":
        from benchmarks.hostile import measuring

        seconds = options.seconds or (3.0 if options.quick else measuring.SECONDS)
        result, failed = measuring.run(console, options.rows, seconds), False
    elif options.what == "end-to-end":
        from benchmarks import end_to_end

        result, failed = end_to_end.run(console, options.rounds or end_to_end.ROUNDS), False
    elif options.what == "sizing":
        from benchmarks import sizing

        result, failed = sizing.run(console, options.rounds or measure.FULL.rounds)
    elif options.what == "rules":
        pace = replace(measure.FULL, rounds=options.rounds or measure.FULL.rounds)
        rows = workloads.prepare("200 B 4 x 16")
        result, failed = proxies.run(console, list(peers.RULED), rows, pace, peers.KLAMM_FULL)
        result["where"] = where.run()
        for row in result["where"]:
            name, ratio = row["name"], row["ratio"]
            console.print(f"{row['median_us']:.1f} us, {ratio:.3f} of reading all: {name}", markup=False)
    elif options.what == "live":
        pace = replace(measure.FULL, rounds=options.rounds or measure.FULL.rounds)
        result, failed = proxies.run(
            console, list(peers.WATCHED), workloads.watched(), pace, peers.KLAMM_FULL
        )
    elif options.what == "workers":
        pace = replace(measure.FULL, rounds=options.rounds or measure.FULL.rounds)
        rows, result, failed = workloads.prepare(options.rows or "200 B"), {}, False
        for name, pinned in (("one_core", True), ("all_cores", False)):
            on = proxies.cpus(pinned)
            result[name], lost = proxies.run(console, list(peers.LED), rows, pace, peers.KLAMM_FULL, on)
            failed = failed or lost
    elif options.what == "peers":
        rows = workloads.prepare(options.rows, frames.OF_KAFKA_4_0)
        pace = replace(measure.FULL, rounds=options.rounds or measure.FULL.rounds)
        result, failed = proxies.run(console, list(peers.BESIDE), rows, pace, count_calls=True)
    elif options.what == "tls":
        from benchmarks import tls

        pace = measure.QUICK if options.quick else measure.FULL
        pace = replace(pace, rounds=options.rounds or pace.rounds)
        result, failed = tls.run(console, options.rows, pace)
    elif options.what == "connections":
        from benchmarks import connections

        result, failed = connections.run(console, options.seconds or connections.SECONDS), False
    elif options.what == "capture":
        pace = replace(measure.FULL, rounds=options.rounds or measure.FULL.rounds)
        rows = workloads.prepare("16 KiB")
        result, failed = proxies.run(console, list(peers.CAPTURING), rows, pace, peers.KLAMM_FULL)
    else:
        wanted = [peers.DIRECT, *(name for name in options.only.split(",") if name != peers.DIRECT)]
        unknown = [name for name in wanted if name not in peers.NAMES]
        if unknown:
            parser.error(f"--only: no peer is called {unknown[0]!r}; there are {', '.join(peers.NAMES)}")
        if not any(options.rows in name for name in workloads.NAMES):
            parser.error(f"--rows: no row has {options.rows!r} in it; there are {', '.join(workloads.NAMES)}")
        pace = measure.QUICK if options.quick else measure.FULL
        if options.rounds:
            pace = replace(pace, rounds=options.rounds)
        result, failed = proxies.run(console, wanted, workloads.prepare(options.rows), pace)
    out.parent.mkdir(exist_ok=True)
    machine = _machine()
    out.write_text(json.dumps({"machine": machine, **result}, indent=1) + "\n")
    console.print(f"written to {os.path.relpath(out)}")
    if options.what == "peers" and not options.rows:
        page.write(result, machine)
        console.print(f"written to {os.path.relpath(page.PAGE)}")
    return int(failed)


def _machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = [line.partition(": ")[2] for line in info if line.startswith("model name")]
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": cpu[0] if cpu else platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


if __name__ == "__main__":
    sys.exit(main())
