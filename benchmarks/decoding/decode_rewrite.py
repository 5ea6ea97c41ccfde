"""The addresses in a Metadata response of about 27 KB, found and replaced as the proxy does it."""

from benchmarks.decoding.decode_bodies import Task, metadata
from benchmarks.traffic import frames
from klamm.decoders import decode
from klamm.rules.plan import Planner, Wishes

BROKERS = (3, 12)
VERSION = 12
TARGET = 1 / 120  # of kafka-python's time to read that response


def tasks() -> dict[str, Task]:
    """The tasks by name, each tried once here."""
    from klamm.proxy.session.rewriting.addresses import rewrite

    endpoints = Planner(Wishes()).plan(frames.METADATA, VERSION).endpoints
    assert endpoints is not None
    made: dict[str, Task] = {}
    for count in BROKERS:
        body = metadata(count)

        def task(body: bytes = body) -> bytes:
            return b"".join(rewrite(endpoints, body, 0, len(body), _stands_for) or ())

        _look(body, task())
        made[f"klamm find and splice {count} addresses"] = task
    return made


def _stands_for(kind: str, node_id: int, host: str, port: int) -> tuple[str, int]:
    return "127.0.0.1", 19_093 + node_id


def _look(body: bytes, spliced: bytes) -> None:
    """Checks that the spliced body names klamm's addresses, and differs in nothing else."""
    before, after = (decode(data, frames.METADATA, VERSION, "response") for data in (body, spliced))
    for broker in after["brokers"]:
        if (broker["host"], broker["port"]) != _stands_for("broker", broker["node_id"], "", 0):
            raise AssertionError(f"not rewritten: {broker}")
    if {**after, "brokers": before["brokers"]} != before:
        raise AssertionError("the rewrite changed more than the addresses")
