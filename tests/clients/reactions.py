"""The command line of the programs that drivers.py describes: BOOTSTRAP ACTION TOPIC [key=value ...]."""

import json
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from klamm.decoders.error_codes import error_name

Options = dict[str, Any]
DEFAULTS: Options = {
    "n": 1,
    "acks": "all",
    "idempotent": False,
    "id": None,
    "group": "group",
    "isolation": "read_uncommitted",
    "reset": "earliest",
    "errors": 5,
    "op": "describe",
    "partitions": 1,
    "replicas": 3,
    "timeout_ms": 20_000,
    "username": None,
    "password": None,
}
_started = time.monotonic()
_lock = threading.Lock()


def run(table: dict[str, Callable[[str, str, Options], None]], arguments: list[str] = sys.argv[1:]) -> None:
    """Do the action with the function of `table`, called with (bootstrap, topic, options); then end at once.

    What takes longer than `timeout_ms` is ended; of it, options have 3/4. Only consumers are closed.
    """
    bootstrap, action, topic, *words = arguments
    options = {**DEFAULTS, **dict(map(_option, words))}
    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s")
    threading.Timer(options["timeout_ms"] / 1000, _too_long).start()
    options["timeout_ms"] = options["timeout_ms"] * 3 // 4
    try:
        table[action](bootstrap, topic, options)
    except Exception:
        traceback.print_exc()
        os._exit(1)
    done()


def _option(word: str) -> tuple[str, Any]:
    key, _, text = word.partition("=")
    kind = type(DEFAULTS[key])
    if kind is bool:
        return key, text == "true"
    return key, int(text) if kind is int else text


def say(event: str, **fields: Any) -> None:
    """One event, as a JSON line on standard output."""
    with _lock:
        print(json.dumps({"event": event, **fields}), flush=True)


def since(begin: float = _started) -> int:
    """ms since a time of the monotonic clock; since the program began unless told."""
    return round((time.monotonic() - begin) * 1000)


def is_late(options: Options) -> bool:
    """Whether `timeout_ms` are over."""
    return since() >= options["timeout_ms"]


def partitions_event(event: str, partitions: Iterable[Any], begin: float) -> None:
    """assigned, revoked or lost; of no partitions, nothing is said."""
    if numbers := sorted(each.partition for each in partitions):
        say(event, partitions=numbers, ms=since(begin))


class Rebalances:
    """A listener of aiokafka or kafka-python: what its consumer gets and loses is said."""

    def __init__(self, begin: float) -> None:
        self.begin = begin

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        partitions_event("assigned", assigned, self.begin)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        partitions_event("revoked", revoked, self.begin)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        partitions_event("lost", lost, self.begin)


def sasl(options: Options) -> dict[str, Any]:
    """The settings of aiokafka and kafka-python for a user; none where there is none."""
    if not options["username"]:
        return {}
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": options["username"],
        "sasl_plain_password": options["password"],
    }


def code_name(error: Exception) -> str:
    """Kafka's name of an error of aiokafka or kafka-python, else its class."""
    code = getattr(error, "errno", None)
    return error_name(code) if isinstance(code, int) else type(error).__name__


def failure(where: str, error: Exception, begin: float, **fields: Any) -> None:
    """The event of an exception of aiokafka or kafka-python."""
    retriable = bool(getattr(error, "retriable", False))
    details = {"fatal": False, **fields}
    say(
        "error",
        where=where,
        error=code_name(error),
        message=str(error),
        retriable=retriable,
        ms=since(begin),
        **details,
    )


def done() -> None:
    """The last event, and the end of the program."""
    say("done")
    os._exit(0)


def _too_long() -> None:
    say(
        "error",
        where="program",
        error="NOT_DONE_IN_TIME",
        message="",
        retriable=False,
        fatal=False,
        ms=since(),
    )
    done()
