"""A game day: the shop places orders while brokers go away, answers come late, and one client runs wild.

    python examples/game_day.py localhost:9092

Ends with 1 if an order was lost or took longer than customers wait.
"""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "orders"))

from confluent_kafka import KafkaException
from producer import Shop

from klamm.client.front import Front, in_front_of

PATIENCE_S = 5.0
PHASE_S = 3.0


Phase = Callable[[Front], AbstractContextManager[object]]
PHASES: dict[str, Phase] = {
    "steady": lambda klamm: nullcontext(),
    "leaders move": lambda klamm: klamm.inject("Produce", "NOT_LEADER_OR_FOLLOWER", chance="20%"),
    "slow brokers": lambda klamm: klamm.delay("Produce", "200ms", jitter="100ms"),
    "cut connections": lambda klamm: klamm.disconnect("Produce", when="after", chance="5%"),
    "broker 2 is down": lambda klamm: klamm.down(broker=2, for_=PHASE_S / 2),
    "recovered": lambda klamm: nullcontext(),
}


def main(cluster: str) -> int:
    """The exit code."""
    failed = 0
    with in_front_of(cluster) as klamm:
        shop = Shop(klamm.bootstrap, PATIENCE_S)
        for name, phase in PHASES.items():
            with phase(klamm):
                orders, lost, slowest = place_orders(shop)
            failed += lost + (slowest > PATIENCE_S)
            print(f"{name:16} {orders:5} orders  {lost:3} lost  slowest {slowest:.2f} s", flush=True)
        if failed:
            print(klamm.report())
    print("a bad day" if failed else "a good day")
    return 1 if failed else 0


def place_orders(shop: Shop) -> tuple[int, int, float]:
    """For one phase: how many, how many of them failed, and the longest that one took, in seconds."""
    orders = lost = 0
    slowest, ends = 0.0, time.monotonic() + PHASE_S
    while time.monotonic() < ends:
        began = time.monotonic()
        orders += 1
        try:
            shop.place(orders, "tea")
        except KafkaException as problem:
            lost += 1
            print(f"order {orders}: {problem}", flush=True)
        slowest = max(slowest, time.monotonic() - began)
    return orders, lost, slowest


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
