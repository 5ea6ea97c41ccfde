"""The resources of a process, as workers tell them to their lead."""

import pytest
from prometheus_client import PROCESS_COLLECTOR

from klamm.proxy.metrics import usage


def test_it_tells_what_prometheus_tells_of_a_process() -> None:
    told = {sample.name: sample.value for family in PROCESS_COLLECTOR.collect() for sample in family.samples}
    found = usage.usage(7.0)
    assert set(found) == set(told)
    assert found["process_start_time_seconds"] == 7
    assert found["process_max_fds"] == told["process_max_fds"]
    for name in (
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
    ):
        assert told[name] / 2 < found[name] < told[name] * 2


def test_what_the_system_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "STATM", "/no/such/file")
    told = {"process_cpu_seconds_total", "process_start_time_seconds", "process_max_fds"}
    assert set(usage.usage(7.0)) == told
