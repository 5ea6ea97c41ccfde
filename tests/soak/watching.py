"""Looks once a second how far groups have committed, and how much memory klamm has."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.soak.clients import ORDERS, PARTITIONS
from tests.soak.copier import GROUP
from tests.soak.ground import Ground

PERIOD_S, TIMEOUT_S = 1.0, 5.0


class Watch:
    """`commits`: offsets by partition, at each time (s since the beginning). `memory`: bytes of klamm and its
    workers, while they run.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.began = time.monotonic()
        self.commits: list[tuple[float, dict[str, int]]] = []
        self.memory: list[tuple[float, int]] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look_on, name="watch")

    def __enter__(self) -> Watch:
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.over.set()
        self.thread.join()

    def _look_on(self) -> None:
        while not self.over.wait(PERIOD_S):
            now = time.monotonic() - self.began
            if bytes_ := self._memory():
                self.memory.append((now, bytes_))
            if commits := self.committed():
                self.commits.append((now, commits))

    def committed(self) -> dict[str, int]:
        """Empty while no broker can tell."""
        settings = {"bootstrap.servers": self.ground.kafka.bootstrap(), "group.id": GROUP, "log_level": 0}
        asking = Consumer(settings)
        wanted = [TopicPartition(ORDERS, partition) for partition in range(PARTITIONS)]
        try:
            found = asking.committed(wanted, TIMEOUT_S)
        except KafkaException:
            return {}
        finally:
            asking.close()
        return {f"{one.topic}-{one.partition}": one.offset for one in found if one.offset >= 0}

    def _memory(self) -> int:
        """0 while klamm is away."""
        try:
            pids = [self.ground.klamm.child.pid, *self.ground.workers]
            return sum(_resident(pid) for pid in pids)
        except (OSError, IndexError):
            return 0


def _resident(pid: int) -> int:
    """0 for a process that has ended, and that nobody has waited for yet."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
