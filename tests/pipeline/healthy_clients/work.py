"""The work of the healthy clients, and their reports."""

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

ORDERS, INVOICES, PAYMENTS, CLICKS, QUIET, SHIPMENTS, VISITS = (
    f"healthy-{name}" for name in ("orders", "invoices", "payments", "clicks", "quiet", "shipments", "visits")
)
PARTITIONS = {ORDERS: 6, INVOICES: 3, PAYMENTS: 3, CLICKS: 3, QUIET: 1, SHIPMENTS: 3, VISITS: 3}
BURST_S = 0.5
PATIENCE_S = 40.0  # beyond the end
KEYS = 500
_saying = threading.Lock()


def record(index: int) -> tuple[bytes, bytes]:
    """Key and value: all keys come equally often, values compress."""
    return (
        f"customer-{index % KEYS}".encode(),
        f'{{"order": {index}, "state": "paid", "notes": "{"none " * 30}"}}'.encode(),
    )


def bursts(end: float, count: int) -> Iterator[list[tuple[bytes, bytes]]]:
    """`count` records every BURST_S seconds, until `end` on the monotonic clock."""
    index, due = 0, time.monotonic()
    while due < end:
        time.sleep(max(0.0, due - time.monotonic()))
        yield [record(index + offset) for offset in range(count)]
        index, due = index + count, due + BURST_S


def goes_on(end: float, done: object) -> bool:
    """Until `end`, and on a slow machine until there is something done."""
    return time.monotonic() < end or (not done and time.monotonic() < end + PATIENCE_S)


def say(client_id: str, **what: Any) -> None:
    """Report as a line of JSON. The lock keeps lines of threads whole: unbuffered, print writes twice."""
    with _saying:
        print(json.dumps({"client_id": client_id, **what}), flush=True)


def together(work: Sequence[tuple[Callable[..., None], Sequence[Any]]]) -> int:
    """All of it in threads; 1 where one of them failed."""
    failed: list[str] = []

    def run(what: Callable[..., None], arguments: Sequence[Any]) -> None:
        try:
            what(*arguments)
        except Exception:
            failed.append(what.__name__)
            traceback.print_exc()

    threads = [threading.Thread(target=run, args=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return int(bool(failed))


def arguments() -> tuple[str, float]:
    """BOOTSTRAP SECONDS of the command line."""
    if len(sys.argv) != 3:
        sys.exit("BOOTSTRAP SECONDS")
    return sys.argv[1], float(sys.argv[2])
