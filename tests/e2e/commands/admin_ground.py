"""The fixture of the admin API's tests: a klamm, a shop at work through it, and a client of the API."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from confluent_kafka.admin import ClusterMetadata

from klamm.client.types import Capture, Connection, PausedFrame
from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e.asking import Asking
from tests.e2e.klamm_process import Klamm
from tests.e2e.light_traffic import LEADER, PROBE, SHOP, Shop, probing

RULE, REFUSED, PAUSED = "refused", "POLICY_VIOLATION", "paused"


class Ground:
    """The running parts."""

    def __init__(self, kafka: Cluster, klamm: Klamm, shop: Shop, api: Asking, folder: Path) -> None:
        self.kafka, self.klamm, self.shop, self.api, self.folder = kafka, klamm, shop, api, folder

    def refuse(self, error: str = REFUSED, name: str = RULE, **more: Any) -> None:
        """Add a rule for the shop's records."""
        written = {"name": name, "api": "Produce", "topic": self.shop.topic, "error": error, **more}
        self.api.add_rule(written)

    def get(self, path: str) -> str:
        """Without a client."""
        self.api.asked.add(("GET", path))
        return self.klamm.get(path)

    @contextmanager
    def pausing(self, side: str) -> Iterator[Future[ClusterMetadata]]:
        """A third client asks for metadata, and a rule holds one such frame. What it gets."""
        rule = {"name": PAUSED, "api": "Metadata", "client": PROBE, "side": side, "times": 1, "pause": "60s"}
        with probing(self.klamm.bootstrap) as ask_for:
            self.api.add_rule(rule)
            try:
                yield ask_for(self.shop.topic)
            finally:
                self.api.rules_off()  # lets go what it holds

    @property
    def records_of_the_shop(self) -> str:
        """An expression."""
        return f'api == Produce and topic == "{self.shop.topic}"'

    @contextmanager
    def capturing(self) -> Iterator[Capture]:
        """Of the shop's records, whole."""
        yield self.api.begin_capture(mkdtemp(dir=self.folder), "keep", self.records_of_the_shop)
        self.api.end_capture()

    def paused(self) -> PausedFrame:
        """The frame that is."""
        (found,) = wait_for(self.api.paused, "a paused frame")
        assert isinstance(found, PausedFrame)
        return found

    def connection(self) -> Connection:
        """The one on which the shop produces."""
        found: Connection = wait_for(
            lambda: next(
                (
                    each
                    for each in self.api.connections()
                    if (each.client_id, each.broker) == (SHOP, str(LEADER))
                ),
                None,
            ),
            "the shop's connection",
        )
        return found
