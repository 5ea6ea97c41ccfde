"""Client programs that do one thing in front of klamm and say, event by event, how their client takes it.

    PROGRAM BOOTSTRAP ACTION TOPIC [key=value ...]

  produce      n acks(0|1|all) idempotent           -> produced, error; franz-go's also pause_ms, before each
  transaction  n id                                 -> initialised, produced, committed, error, aborted
  consume      group n isolation reset errors       -> assigned, revoked, lost, record, committed, error
  admin        op(create|describe|delete) partitions replicas  -> created, described, deleted, error

Every action takes `timeout_ms` (20000), and `username` and `password` for SASL with PLAIN; franz-go's also
`ca` and `cert` for TLS, and `mechanism` and `token`, as in actions.py. An event
is a JSON line on standard output, and the last one is `done`; the client's log goes to standard error.

  produced     i partition offset ms                  ms: since the call began
  error        where error message retriable fatal ms, in produce also i, in a transaction also abortable
  record       partition offset value ms              ms: since the consumer was made
  assigned     partitions (their numbers)             revoked and lost too
  described    leaders (node ids, by partition)

`where` names the call that failed; `error` is Kafka's name where the client tells it, else the client's own.
In a transaction that has begun, `fatal` and `abortable` say whether the abort that the program tried worked.
A consumer polls until it has `n` records or `errors` (5), and commits until that works. The client is given
3/4 of `timeout_ms`, the rest is for aborting and closing; what takes longer ends with NOT_DONE_IN_TIME.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.brokers.jars import ROOT, compiled, java
from tests.brokers.kraft import VERSION
from tests.brokers.namespace import Namespace

FOLDER = Path(__file__).resolve().parent
Event = dict[str, Any]


class Driver(NamedTuple):
    """A program by the name of its client. `program` gives its command line without arguments."""

    name: str
    program: Callable[[], list[str]]

    def command(self, bootstrap: str, action: str, topic: str, **options: object) -> list[str]:
        """The command that does `action`; True and False become `true` and `false`."""
        words = [
            f"{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in options.items()
        ]
        return [*self.program(), bootstrap, action, topic, *words]

    def run(
        self,
        bootstrap: str,
        action: str,
        topic: str,
        *,
        log: Path,
        inside: Namespace | None = None,
        **options: object,
    ) -> list[Event]:
        """Do `action`, in a namespace where one is given; the events. The client's log is written to `log`.

        AssertionError, with the end of the log, where the program fails or says no `done`.
        """
        command = self.command(bootstrap, action, topic, **options)
        patience_s = int(str(options.get("timeout_ms", 20_000))) / 1000 + 15
        with log.open("w") as errors:
            done = subprocess.run(
                ["setpriv", "--pdeathsig", "KILL", *(inside.command(*command) if inside else command)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                timeout=patience_s,
                check=False,
            )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        tail = log.read_text(errors="replace")[-4000:]
        assert done.returncode == 0, f"exit {done.returncode}: {command}\n{done.stdout}\n{tail}"
        assert events[-1:] == [{"event": "done"}], f"not done: {command}\n{done.stdout}\n{tail}"
        return events


def _python(name: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, str(FOLDER / f"{name}_reactions.py")]


def _java() -> list[str]:
    sources = FOLDER / "java"
    logging = f"-Dlog4j2.configurationFile={sources}/reactions.properties"
    classes = compiled(VERSION, sources, sources / "kafka_4")
    return java(VERSION, "Reactions", options=(logging,), classes=classes)


def _franz_go() -> list[str]:
    program = ROOT / ".go" / "reactions"
    sources = [path for path in (FOLDER / "go").iterdir() if path.suffix in {".go", ".mod", ".sum"}]
    if not program.exists() or program.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        raise RuntimeError(f"{program} is missing, or older than its source; run: make .go/reactions")
    return [str(program)]


PROGRAMS = {
    "librdkafka": _python("librdkafka"),
    "aiokafka": _python("aiokafka"),
    "kafka-python": _python("kafka_python"),
    "java": _java,
    "franz-go": _franz_go,
}
DRIVERS = {name: Driver(name, program) for name, program in PROGRAMS.items()}
