"""klamm in front of a cluster, for a test or a script: `with in_front_of("localhost:9092") as klamm: ...`."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from klamm.client.failures import ApiError, Refused
from klamm.client.faults import (
    POLL_S,
    Conditions,
    Fault,
    Names,
    RuleCounters,
    Selectors,
    Written,
    down,
    duration,
    rule,
)
from klamm.client.process import Process
from klamm.client.sightings import Sought, line
from klamm.client.sync import Klamm
from klamm.client.types import Exchange
from klamm.settings.yaml_line import flow

KEPT = 1000  # exchanges, by klamm
ASK_AGAIN_S = 20.0  # klamm keeps exchanges for a minute after it was asked
USER = "test"


class Front:
    """A running klamm: injects faults, and sees the exchanges of clients.

    Clients of any language find the cluster at `bootstrap`. Questions about exchanges are about those since
    `begin()`.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.api = Klamm(process.admin, user=USER)
        self.faults: list[Fault] = []
        self._known: dict[str, RuleCounters] = {}
        self._done = threading.Event()
        self.begin()
        threading.Thread(target=self._keep, name="klamm", daemon=True).start()

    @property
    def bootstrap(self) -> str:
        """ "host:port" for clients: their bootstrap.servers."""
        return self.process.bootstrap

    @property
    def admin(self) -> str:
        """ "host:port" of the admin API: http://host:port/v1/rules and so on."""
        return self.process.admin

    def begin(self) -> None:
        """Ends all rules; earlier exchanges count no more."""
        for fault in self.faults:
            fault.remove()  # its counters stay
        for state in self.api.rules():
            if state.origin == "hand":
                self.api.remove_rule(state.name)
        self.faults, self._known = [], {}
        newest = self.api.exchanges(limit=1, bodies=True)
        self._since = newest.since
        self._before = newest.exchanges[-1].id if newest.exchanges else 0

    def close(self) -> None:
        """Ends all rules; klamm itself goes on until its process is stopped."""
        self._done.set()
        if self.process.running:
            self.begin()

    # faults

    def inject(
        self, api: Names, error: str, *, applied: bool = False, **selectors: Unpack[Selectors]
    ) -> Fault:
        """Answer with an error. `applied`: the broker still carries the request out."""
        return self._fault(api, {"error": {"code": error, "applied": applied}}, selectors)

    def delay(
        self, api: Names | None, time: float | str, *, jitter: float | str = 0, **selectors: Unpack[Selectors]
    ) -> Fault:
        """Answer late: "500ms", or seconds. `api` None: all."""
        return self._fault(api, {"delay": {"time": duration(time), "jitter": duration(jitter)}}, selectors)

    def disconnect(
        self,
        api: Names | None = None,
        *,
        when: str = "after",
        how: str = "rst",
        **selectors: Unpack[Selectors],
    ) -> Fault:
        """Cut connections at a request: `when` is before, after, answered or mid frame; `how` rst or fin."""
        return self._fault(api, {"disconnect": {"when": when, "how": how}}, selectors)

    def block(self, api: Names | None = None, *, how: str = "error", **selectors: Unpack[Selectors]) -> Fault:
        """Refuse requests: `how` is error (the API's authorization error), reset or silent."""
        return self._fault(api, {"block": how}, selectors)

    def blackhole(self, api: Names | None = None, **selectors: Unpack[Selectors]) -> Fault:
        """Keep the connection of such a request open and silent from then on."""
        return self._fault(api, {"blackhole": True}, selectors)

    def down(self, broker: int | str, **selectors: Unpack[Conditions]) -> Fault:
        """A broker is not there: its connections are cut as they say something, and no new one opens. For
        `client` ids, which only requests say, new ones are cut at the first.
        """
        rules = down(rule({"broker": broker}, selectors))
        name = selectors.get("name")
        return self._add(
            [{**each, "name": f"{name}-{n}"} if name else each for n, each in enumerate(rules, 1)]
        )

    def rules(self, *rules: Mapping[str, Any] | str | Path) -> Fault:
        """Any rules (docs/rules.md): each a mapping, the text of a rule file, or the path of one."""
        return self._add([written for each in rules for written in _written(each)])

    # exchanges

    def exchanges(
        self,
        api: Names | None = None,
        *,
        client_id: Names | None = None,
        topic: Names | None = None,
        group: Names | None = None,
        broker: int | str | None = None,
        error: Names | None = None,
        where: str | None = None,
        cluster: Names | None = None,
    ) -> list[Exchange]:
        """Requests and their responses, oldest first, of the newest 1000. Names may be globs.

        `where` is an expression over the fields of the request or of the response (docs/expressions.md). A
        request that waits for its response is not among them yet. ValueError for names that Kafka lacks.
        """
        return self._seen(Sought.of(api, client_id, topic, group, broker, error, where, cluster))

    def wait_for(
        self, api: Names | None = None, *, count: int = 1, timeout_s: float = 10.0, **sought: Any
    ) -> list[Exchange]:
        """Waits until there are `count` exchanges; `sought` as of `exchanges`. AssertionError after
        `timeout_s`.
        """
        __tracebackhide__ = True
        ends, sight = time.monotonic() + timeout_s, Sought.of(api, **sought)
        while len(found := self._seen(sight)) < count:
            if time.monotonic() > ends:
                raise AssertionError(self._missing(sight, found, count, timeout_s))
            time.sleep(POLL_S)
        return found

    async def wait_for_async(
        self, api: Names | None = None, *, count: int = 1, timeout_s: float = 10.0, **sought: Any
    ) -> list[Exchange]:
        """As `wait_for`, without blocking the event loop."""
        __tracebackhide__ = True
        ends, sight = time.monotonic() + timeout_s, Sought.of(api, **sought)
        while len(found := await asyncio.to_thread(self._seen, sight)) < count:
            if time.monotonic() > ends:
                raise AssertionError(self._missing(sight, found, count, timeout_s))
            await asyncio.sleep(POLL_S)
        return found

    def assert_no(self, api: Names | None = None, *, within_s: float = 0.0, **sought: Any) -> None:
        """AssertionError if there was such an exchange, or is one within `within_s` from now."""
        __tracebackhide__ = True
        ends, sight = time.monotonic() + within_s, Sought.of(api, **sought)
        while True:
            late = time.monotonic() >= ends
            if found := self._seen(sight, complete=True):
                lines = "\n  ".join(map(line, found[:10]))
                raise AssertionError(f"{len(found)} exchanges of {sight}:\n  {lines}")
            if late:
                return
            time.sleep(min(POLL_S, max(0.0, ends - time.monotonic())))

    def report(self, last: int = 20) -> str:
        """For people: which rules fired, and the last exchanges."""
        if not self.process.running:
            return f"klamm ended with exit code {self.process.child.returncode}:\n{self.process.log_tail()}"
        lines = [f"klamm {self.bootstrap} in front of {self.process.cluster}, admin API http://{self.admin}"]
        counters = [counter for fault in self.faults for counter in fault.counters]
        for title, chosen in (
            ("rules that fired", [each for each in counters if each.hits]),
            ("rules that did not fire", [each for each in counters if not each.hits]),
        ):
            lines += [f"{title}:" if chosen else f"{title}: none"]
            lines += [
                f"  {t.name}: {t.hits} hits of {t.matches} matches, {_short(t.written)}" for t in chosen
            ]
        seen = self._seen(Sought.of())
        lines += [
            f"last {min(last, len(seen))} of {len(seen)} exchanges:",
            *("  " + line(each) for each in seen[-last:]),
        ]
        return "\n".join(lines)

    # how

    def _fault(self, api: Names | None, action: Written, selectors: Mapping[str, Any]) -> Fault:
        return self._add([rule(action if api is None else {"api": api, **action}, selectors)])

    def _add(self, rules: Sequence[Written]) -> Fault:
        names: list[str] = []
        try:
            for written in rules:
                rule = self.api.add_rule({"for": "forever", **written})
                names.append(rule.name)
                self._known[rule.name] = RuleCounters(rule.name, written, 0, 0)
        except ApiError:
            for name in names:
                self._end(name)
            raise
        fault = Fault(names, self._counters, self._end)
        self.faults.append(fault)
        return fault

    def _counters(self, name: str) -> RuleCounters:
        """The counters of now, or the last ones, if klamm has ended the rule."""
        known = self._known[name]
        try:
            rule = self.api.rule(name)
        except Refused as refused:
            if refused.status != 404:
                raise
        else:
            known = self._known[name] = known._replace(matches=rule.matches, hits=rule.hits)
        return known

    def _end(self, name: str) -> None:
        try:
            self.api.remove_rule(name)
        except Refused as refused:
            if refused.status != 404:
                raise

    def _seen(self, sight: Sought, complete: bool = False) -> list[Exchange]:
        """`complete`: RuntimeError where klamm may have seen more than it still keeps."""
        kept = self.api.exchanges(limit=KEPT, bodies=True)
        if kept.since != self._since:
            raise RuntimeError(
                "klamm keeps the exchanges of this test no more: it was not asked for a minute"
            )
        if complete and kept.exchanges and kept.exchanges[0].id > self._before + 1:
            raise RuntimeError(
                f"klamm keeps the newest {KEPT} exchanges, and there were more: call begin() later"
            )
        if sight.where is not None:
            kept = self.api.exchanges(where=sight.where, limit=KEPT, bodies=True)
        return [each for each in kept.exchanges if each.id > self._before and sight.holds(each)]

    def _missing(self, sight: Sought, found: Sequence[Exchange], count: int, timeout_s: float) -> str:
        seen = Counter(each.api for each in self._seen(Sought.of()))
        instead = ", ".join(f"{number} {api}" for api, number in seen.most_common()) or "nothing"
        return f"{len(found)} of {count} exchanges of {sight} within {timeout_s:g} s; seen: {instead}"

    def _keep(self) -> None:
        """klamm forgets exchanges when it is not asked for them."""
        while not self._done.wait(ASK_AGAIN_S):
            try:
                self.api.exchanges(limit=1, bodies=True)
            except ApiError:
                return


@contextmanager
def in_front_of(cluster: str, *options: str, seed: int = 0) -> Iterator[Front]:
    """klamm in front of the cluster at `cluster` ("host:port", several with commas), until the block ends.

    `options` are those of `klamm run`; `seed` decides the chances of rules. Raises NotStarted.
    """
    process = Process(cluster, options, seed)
    try:
        front = Front(process)
        try:
            yield front
        finally:
            front.close()
    finally:
        process.stop()


def _written(given: Mapping[str, Any] | str | Path) -> list[Written]:
    if isinstance(given, Mapping):
        return [rule({}, given)]
    import yaml

    loaded = yaml.safe_load(given.read_text() if isinstance(given, Path) else given)
    if isinstance(given, str) and loaded == given:  # one line of plain text is no rule: it is a path
        loaded = yaml.safe_load(Path(given).read_text())
    if not isinstance(loaded, dict) or loaded.keys() != {"rules"} or not isinstance(loaded["rules"], list):
        raise ValueError(
            "rules are a mapping with the one key `rules`, a list; seed and plugins are of `klamm run`"
        )
    return [rule({}, each) for each in loaded["rules"]]


def _short(written: Mapping[str, Any]) -> str:
    return flow({key: value for key, value in written.items() if (key, value) != ("for", "forever")})
