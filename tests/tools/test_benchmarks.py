"""The load of the benchmarks, where it is more than bytes that were made before."""

import os
import socket
from pathlib import Path

import pytest

from benchmarks import system_calls
from benchmarks.traffic import frames, workloads
from benchmarks.traffic.flow import Flow, Renumbered

BLOBS = workloads.fill(frames.PRODUCE, frames.OF_KAFKA_4_0[frames.PRODUCE], frames.record_batch(200))
IDS = [1000, 7, 123_456_789, 1001, 1002]


def renumbered(number: int, correlation_id: int) -> bytes:
    frame = BLOBS.requests[number * BLOBS.request_bytes : (number + 1) * BLOBS.request_bytes]
    return frame[:8] + correlation_id.to_bytes(4) + frame[12:]


@pytest.mark.parametrize("cut", [1, 3, 11, 12, 13, BLOBS.request_bytes - 1, 1000])
def test_answers_have_the_ids_that_a_proxy_gave_to_the_requests_however_these_are_cut(cut: int) -> None:
    proxy, broker = socket.socketpair()
    with proxy, broker:
        responses = memoryview(BLOBS.responses)
        usual = Flow(broker, BLOBS.request_bytes, responses, BLOBS.response_bytes, BLOBS.cycle)
        flow = Renumbered(usual, IDS[0].to_bytes(4), BLOBS.cycle)
        flow.send(1)
        sent = b"".join(renumbered(number, given) for number, given in enumerate(IDS[1:], 1))
        for at in range(0, len(sent), cut):
            proxy.sendall(sent[at : at + cut])
            if ready := flow.receive():
                flow.send(ready)
        answers = proxy.recv(1 << 20)
    size = BLOBS.response_bytes
    there = [answers[at : at + size] for at in range(0, len(answers), size)]
    assert [int.from_bytes(answer[4:8]) for answer in there] == IDS
    for number, answer in enumerate(there):
        made = BLOBS.responses[number * size : (number + 1) * size]
        assert answer[:4] + answer[8:] == made[:4] + made[8:]


def test_system_calls_cannot_be_counted_without_perf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    counting = system_calls.counting(os.getpid(), tmp_path)
    with pytest.raises(system_calls.Uncounted, match="linux-perf"), counting:
        pass
