"""proxies: klamm beside HAProxy (the default). decode: the decoders. rules: klamm with rules and without.
live: klamm while somebody reads its live stream. capture: while it captures. show: captures summed up, beside
tshark. pipeline: captures on Spark, beside tshark. end-to-end: the latency of a record from a producer to a
consumer, through real brokers. check: are the frames valid?
"""

import argparse
import contextlib
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import broker, measure, peers, report, where, workloads
from benchmarks.workloads import API_NAMES

KINDS = ("proxies", "decode", "rules", "live", "capture", "show", "pipeline", "end-to-end", "check")
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=KINDS, default=KINDS[0])
    parser.add_argument("--quick", action="store_true", help="about a minute: for a look, not for a claim")
    parser.add_argument(
        "--only", default=",".join(peers.NAMES), metavar="PEER,...", help="some of %(default)s"
    )
    parser.add_argument("--rounds", type=int, help="how often each row is measured")
    parser.add_argument("--rows", default="", metavar="TEXT", help='some rows: "Fetch", "Fetch 200 B 4 x 16"')
    parser.add_argument("--out", type=Path, help="where the JSON goes (benchmarks/results/WHAT.json)")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    out: Path = options.out or RESULTS / f"{options.what}.json"
    if options.what == "check":
        from benchmarks import check

        console.print(check.check())
        return 0
    if options.what == "decode":
        from benchmarks import decode

        result, failed = decode.run(console, quick=options.quick), False
    elif options.what == "show":
        from benchmarks import show

        result, failed = show.run(console, options.rounds or show.ROUNDS, options.quick), False
    elif options.what == "pipeline":
        from benchmarks import pipeline

        result, failed = pipeline.run(console, options.quick), False
    elif options.what == "end-to-end":
        from benchmarks import end_to_end

        result, failed = end_to_end.run(console, options.rounds or end_to_end.ROUNDS), False
    elif options.what == "rules":
        pace = replace(measure.FULL, rounds=options.rounds or measure.FULL.rounds)
        rows = workloads.prepare("200 B 4 x 16")
        result, failed = _proxies(console, list(peers.RULED), rows, pace, peers.KLAMM_FULL)
        result["where"] = where.run()
        for row in result["where"]:
            name, ratio = row["name"], row["ratio"]
            console.print(f"{row['median_us']:.1f} us, {ratio:.3f} of reading all: {name}", markup=False)
    elif options.what == "live":
        pace = replace(measure.FULL, rounds=options.rounds or measure.FULL.rounds)
        result, failed = _proxies(console, list(peers.WATCHED), workloads.watched(), pace, peers.KLAMM_FULL)
    elif options.what == "capture":
        pace = replace(measure.FULL, rounds=options.rounds or measure.FULL.rounds)
        rows = workloads.prepare("16 KiB")
        result, failed = _proxies(console, list(peers.CAPTURING), rows, pace, peers.KLAMM_FULL)
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
        try:
            result, failed = _proxies(console, wanted, workloads.prepare(options.rows), pace)
        except peers.Lost as error:
            console.print(error, markup=False, style="red")
            return 1
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"machine": _machine(), **result}, indent=1) + "\n")
    console.print(f"written to {os.path.relpath(out)}")
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


def _proxies(
    console: Console,
    wanted: list[str],
    rows: list[workloads.Workload],
    pace: measure.Pace,
    base: str = peers.HAPROXY,
) -> tuple[dict[str, Any], bool]:
    cpus = sorted(os.sched_getaffinity(0))
    proxy_cpus, generator_cpus = {cpus[-1]}, set(cpus[:-1]) or {cpus[-1]}
    load_average = os.getloadavg()
    console.print(f"proxies on CPU {sorted(proxy_cpus)}, client and broker on {sorted(generator_cpus)}")
    blobs = list({id(row.blobs): row.blobs for row in rows}.values())
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="klamm-bench-")))
        process, port = stack.enter_context(broker.running(blobs, generator_cpus))
        os.sched_setaffinity(0, generator_cpus)
        stack.callback(os.sched_setaffinity, 0, set(cpus))
        started, absent = [], {}
        for name in wanted:
            try:
                started.append(peers.start(name, (peers.HOST, port), folder, proxy_cpus))
                stack.callback(peers.stop, started[-1])
            except peers.Absent as reason:
                absent[name] = str(reason)
                console.print(f"not measured: {name}: {reason}", markup=False)
        assert process.pid is not None
        slices, memory = measure.run(rows, started, process.pid, pace, console.print)
        compared = [peer for peer in started if peer.admin]
        differences = [line for peer in compared for line in peers.differences(peer)]
    found, load = report.rows(slices, base), report.loads(slices)
    if found[0].values:
        console.print(report.cpu_table(found, base))
        console.print(report.memory_table(memory))
    console.print(report.load_table(load))
    for line in differences:
        console.print(line, style="red")
    for peer in compared:
        if not differences:
            console.print(f"{peer.name}: the counters equal what the generator sent and got", style="green")
    result = {
        "pace": asdict(pace),
        "proxy_cpus": sorted(proxy_cpus),
        "generator_cpus": sorted(generator_cpus),
        "load_average_before": load_average,
        "absent": absent,
        "rows": [asdict(row) for row in found],
        "memory_bytes": report.memory_rows(memory),
        "load": load,
        "sent": {
            peer.name: {API_NAMES[key]: asdict(sent) for key, sent in peer.tally.items()} for peer in started
        },
        "counter_differences": differences,
    }
    return result, bool(differences) or any(name in absent for name in peers.KLAMMS)


if __name__ == "__main__":
    sys.exit(main())
