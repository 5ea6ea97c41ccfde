"""The clients that the pages name, at work: python -m tests.docs.clients BOOTSTRAP, until SIGTERM."""

import signal
import sys
from contextlib import suppress
from threading import Event, Thread

from confluent_kafka import KafkaException, Producer

from klamm.cli.demo.traffic import Run, group_member, payment, producer


def asks(client_id: str) -> Run:
    """Asks for the cluster's metadata, on a new connection each time. The pages pause some of the answers:
    it does not wait for those.
    """

    def run(bootstrap: str, stop: Event) -> None:
        while not stop.wait(0.5):
            client = Producer({"bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 0})
            with suppress(KafkaException):
                client.list_topics(timeout=10)

    return run


# The mock cluster keeps the next members of a group waiting until one that is gone has timed out. The first
# member waits 3 s, and must not time out meanwhile.
BRIEF = {"auto.offset.reset": "earliest", "session.timeout.ms": 4500, "heartbeat.interval.ms": 500}

CLIENTS = (
    producer("orders-service", "orders", 40, payment),
    producer("legacy-app", "orders", 5, payment),
    group_member("billing", "billing", ["orders"], **BRIEF),
    asks("orders-app"),
)


def main(bootstrap: str) -> None:
    """Run them, a thread each."""
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threads = [Thread(target=run, args=(bootstrap, stop)) for run in CLIENTS]
    for thread in threads:
        thread.start()
    print("work", flush=True)
    stop.wait()
    for thread in threads:
        thread.join(5)


if __name__ == "__main__":
    main(sys.argv[1])
