"""The command line that every client program has: BOOTSTRAP ACTION..., one JSON line out per action.

An action is a flat JSON object; `do` names it, and what it leaves out has a default:

  produce      topic seed count acks(0|1|all) [idempotent] [in_flight: requests at a time, librdkafka only]
               [transactional_id aborted] [size] [headers]
               [compression] [per_s] -> acknowledged (a count), failed (indices)
  consume      topic count group [protocol(classic|consumer)] [isolation] [unique: what comes twice counts
               once] -> count, digest, fingerprints where asked to `list`
  share        topic count group -> as consume
  move         topic partition nodes; kafka-python only
  administrate topic partitions replication_factor -> brokers, topics, configs, ...: what the library can

Every action takes `timeout_s`; `security`, `mechanism`, `username`, `password`, `token` (a file with the
one of OAUTHBEARER), `ca` and `cert` where wanted.
`ca` is a PEM file of certificates to trust, `cert` one with the client's own and its key.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

Action = dict[str, Any]
DEFAULTS: Action = {
    "acks": "all",
    "aborted": 0,
    "ca": None,
    "cert": None,
    "compression": "none",
    "group": "group",
    "headers": True,
    "idempotent": False,
    "in_flight": None,
    "isolation": "read_uncommitted",
    "list": False,
    "mechanism": None,
    "partitions": 3,
    "password": None,
    "per_s": 0,
    "protocol": "classic",
    "replication_factor": 1,
    "security": "PLAINTEXT",
    "seed": "seed",
    "size": 0,
    "timeout_s": 45,
    "token": None,
    "transactional_id": None,
    "unique": False,
    "username": None,
    "api_version": None,
}


def run(
    table: dict[str, Callable[[str, Action], dict[str, Any]]], arguments: list[str] = sys.argv[1:]
) -> None:
    """Run the actions of the command line with the functions of `table`, called with (bootstrap, action)."""
    bootstrap, *actions = arguments
    for text in actions:
        action = {**DEFAULTS, **json.loads(text)}
        started = time.monotonic()
        try:
            result = table[action["do"]](bootstrap, action)
        except Exception as error:
            traceback.print_exc()
            say({"do": action["do"], "error": f"{type(error).__name__}: {error}"})
            sys.exit(1)
        say({"do": action["do"], **result, "took_s": round(time.monotonic() - started, 2)})


def say(line: dict[str, Any]) -> None:
    """One JSON line on standard output."""
    print(json.dumps(line), flush=True)


def pace(action: Action, index: int, started: float) -> float:
    """Seconds to wait before record `index` so that `per_s` leave in a second; 0 where no pace is set."""
    return max(0.0, started + index / action["per_s"] - time.monotonic()) if action["per_s"] else 0.0


def enough(action: Action, fingerprints: Sequence[str]) -> bool:
    """Whether `count` records were read."""
    return len(set(fingerprints) if action["unique"] else fingerprints) >= action["count"]


def settle_s(action: Action) -> float:
    """Seconds before a producer may close: Kafka 0.10 drops what it did not read of a closed connection."""
    return 1.0 if action["acks"] == "0" else 0.0
