"""The audit log: a line of JSON for each event, written by a thread and appended to a file of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from klamm.proxy import config
from klamm.proxy.log.event_log import EventLog, Output
from klamm.proxy.log.events import Events, Level
from klamm.proxy.log.file import LogFile
from klamm.proxy.log.lines import Entry, json_of, rfc_3339

CAPACITY = 16_384  # lines waiting
COUNTED = "those that it does not take are counted in klamm_audit_lines_dropped_total"
ALWAYS = ("outcome", "cluster", "address", "principal", "client_id")  # of each line, null if not known
SUCCESS, FAILURE = "success", "failure"
HEARD = frozenset(
    {
        "client_tls_failed", "admin_tls_failed", "draining", "drained", "stopping",
        "rules_loaded", "rules_rejected", "rule_replaced", "rule_ended", "rule_failed",
        "tls_loaded", "tls_rejected", "token_loaded", "token_rejected",
        "users_loaded", "users_rejected", "jwks_loaded", "jwks_rejected",
    }
)  # fmt: skip
"""Events of the log that are in the audit log too."""
TOLD = ("rule", "rules", "seed", "file", "connections", "requests", "within_s", "broker")  # fields of these


class Audit:
    """Takes events from any thread, and never waits for the disk. Lines for which there is no room, and those
    that the file does not take, are counted in `dropped`: the next event puts their number into the log.
    """

    def __init__(
        self,
        output: Output,
        log: Events,
        clock: Callable[[], float] = time.time,
        capacity: int = CAPACITY,
    ) -> None:
        self.log, self.told = log, 0
        self.lines = EventLog(output, audit_line, clock, capacity, owns_output=True)

    @property
    def dropped(self) -> int:
        return self.lines.dropped

    def event(
        self,
        event: str,
        outcome: str,
        *,
        cluster: str | None = None,
        address: str | None = None,
        principal: str | None = None,
        client_id: str | None = None,
        **fields: Any,
    ) -> None:
        """`outcome`: success, or the reason in a word, such as the name of Kafka's error."""
        who: dict[str, Any] = {"cluster": cluster, "address": address, "principal": principal}
        self.lines.event(event, "", outcome=outcome, **who, client_id=client_id, **fields)
        self._tell_dropped()

    def hear(self, kind: str, level: Level, message: object, fields: Mapping[str, Any]) -> None:
        """Take an event of the log, if it is one for the audit log."""
        if kind in HEARD:
            outcome = SUCCESS if level == "info" else FAILURE
            more: dict[str, Any] = {name: fields[name] for name in TOLD if name in fields}
            cluster, address = fields.get("cluster"), fields.get("connection") or None
            self.event(kind, outcome, cluster=cluster, address=address, reason=str(message), **more)

    @contextmanager
    def run(self, version: str, clusters: Sequence[str]) -> Iterator[None]:
        """Around all of klamm's work: its first event, and its last."""
        about: dict[str, Any] = {"version": version, "pid": os.getpid(), "clusters": list(clusters)}
        self.event("started", SUCCESS, **about)
        outcome = FAILURE
        try:
            yield
            outcome = SUCCESS
        finally:
            self.event("stopped", outcome, **about)
            self.close()

    def close(self) -> None:
        """Write the lines that wait, for 2 s at most."""
        self.lines.close()
        self._tell_dropped()

    def _tell_dropped(self) -> None:
        dropped = self.lines.dropped
        if dropped > self.told:
            self.log.event(
                "audit_dropped",
                f"{dropped} lines of the audit log are lost so far: the disk is full, or too slow",
                "error",
                dropped=dropped,
            )
            self.told = dropped


def audit_line(entry: Entry) -> bytes:
    """One JSON object and a newline, whatever text clients have chosen."""
    if entry.kind.startswith("log_"):  # of the writer itself: lines that it dropped
        why = {"outcome": FAILURE, "reason": str(entry.message)}
        fields = dict.fromkeys(ALWAYS) | why | dict(entry.fields)
        return json_of(
            {"time": rfc_3339(entry.time), "event": entry.kind.replace("log_", "audit_"), **fields}
        )
    return json_of({"time": rfc_3339(entry.time), "event": entry.kind, **entry.fields})


def open_audit(settings: config.Audit | None, log: EventLog) -> Audit | None:
    """The audit log of these settings, which hears the log. Raises OSError if its file cannot be opened."""
    if settings is None:
        return None
    audit = Audit(LogFile(Path(settings.file), name="audit file", counted=COUNTED), log)
    log.heard = audit.hear
    return audit
