"""A real Prometheus that scrapes klamm each second."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.brokers.processes import Process, free_ports, wait_for
from tests.e2e.klamm_process import get


class Prometheus:
    """Its address and its process."""

    def __init__(self, address: str, process: Process) -> None:
        self.address, self.process = address, process

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API; HTTPError where it does not take the question."""
        question = f"?{urlencode(parameters)}" if parameters else ""
        return json.loads(get(f"http://{self.address}/api/v1/{path}{question}"))["data"]

    def query(self, expression: str) -> list[Any]:
        """The series of an expression now."""
        found: list[Any] = self.get("query", query=expression)["result"]
        return found

    def numbers(self, expression: str) -> list[float]:
        """The values of an expression now, without those of which there is none (NaN)."""
        values = [float(series["value"][1]) for series in self.query(expression)]
        return [value for value in values if not math.isnan(value)]

    def values(self, series: str, label: str) -> list[str]:
        """The values that a label has in these series, as a variable of Grafana asks for them."""
        found: list[str] = self.get(f"label/{label}/values", **{"match[]": series})
        return found


@contextmanager
def prometheus(folder: Path, target: str, rule_files: Sequence[Path] = ()) -> Iterator[Prometheus]:
    """It has scraped `target` once when the context begins; the job has the name klamm."""
    config = folder / "prometheus.yml"
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(file) for file in rule_files],
        "scrape_configs": [{"job_name": "klamm", "static_configs": [{"targets": [target]}]}],
    }
    config.write_text(json.dumps(settings))
    address = f"127.0.0.1:{free_ports()}"
    program = shutil.which("prometheus")
    assert program, "the Debian package prometheus is not installed"
    options = [f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
    process = Process([program, *options, f"--web.listen-address={address}"], folder / "prometheus.log")
    try:
        server = Prometheus(address, process)
        wait_for(lambda: server.query("up == 1"), "Prometheus", [process], timeout_s=240)
        yield server
    finally:
        process.kill()
