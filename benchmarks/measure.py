"""Rounds: each workload through each peer in turn, in another order each round: noise meets all alike."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peer import Lost, Peer
from benchmarks.traffic import client
from benchmarks.traffic.client import Slice
from benchmarks.traffic.workloads import LARGE_BYTES, Workload

Slices = dict[tuple[Workload, str], list[Slice]]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often each row is measured (`large_rounds` those of 100 MB), and how long each time."""

    rounds: int
    large_rounds: int
    seconds: float


QUICK, FULL = Pace(2, 1, 0.35), Pace(7, 2, 0.6)


@dataclass(slots=True)
class Memory:
    """Resident bytes of a proxy: before any load, just before the 100 MB frames, the most during them."""

    rest: int
    before: int = 0
    peak: int = 0

    @property
    def growth(self) -> int:
        return self.peak - self.rest


def status_bytes(pid: int, name: str) -> int:
    """VmRSS or VmHWM of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def run(
    workloads: list[Workload], peers: list[Peer], broker_pid: int, pace: Pace, tell: Callable[[str], None]
) -> tuple[Slices, dict[str, Memory]]:
    """Everything that is measured, by workload and peer name; the slices of one round have one index."""
    memory = {peer.name: Memory(status_bytes(peer.pid, "VmRSS")) for peer in peers if peer.pid}
    small = [workload for workload in workloads if workload.blobs.size_bytes < LARGE_BYTES]
    large = [workload for workload in workloads if workload.blobs.size_bytes == LARGE_BYTES]
    gc.freeze()
    _rounds(small, peers, broker_pid, 1, lambda peer: peer.warm_up_s)
    tell(f"warm; {pace.rounds} rounds")
    slices = _rounds(small, peers, broker_pid, pace.rounds, lambda _: pace.seconds)
    if large:
        tell("frames of 100 MB")
    for peer in peers:
        if peer.pid:
            memory[peer.name].before = status_bytes(peer.pid, "VmRSS")
            Path(f"/proc/{peer.pid}/clear_refs").write_text("5")
    slices |= _rounds(large, peers, broker_pid, pace.large_rounds, lambda _: pace.seconds)
    for peer in peers:
        if peer.pid:
            memory[peer.name].peak = status_bytes(peer.pid, "VmHWM")
    return slices, memory


def _rounds(
    workloads: list[Workload],
    peers: list[Peer],
    broker_pid: int,
    rounds: int,
    seconds: Callable[[Peer], float],
) -> Slices:
    slices: Slices = {(workload, peer.name): [] for workload in workloads for peer in peers}
    for number in range(rounds):
        turn = number % len(peers)
        for workload in workloads:
            for peer in peers[turn:] + peers[:turn]:
                gc.disable()
                try:
                    took = client.drive(
                        workload, peer.address, peer.pid, broker_pid, seconds(peer), peer.counters, peer.tls
                    )
                except (ConnectionError, TimeoutError) as error:
                    raise Lost(f"{peer.name}, {workload}: {error}\n{peer.log_tail()}") from error
                gc.enable()
                slices[workload, peer.name].append(took)
    return slices
