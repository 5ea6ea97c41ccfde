"""`klamm rules test`: what each rule of a file would have matched and done in captured traffic."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from klamm.captures.captured import api_name
from klamm.captures.summaries.trial import Flow, Outcome, Trial
from klamm.cli.captures.capture_files import captures, reading, report_problems, telling
from klamm.cli.saying import say
from klamm.cli.tables import print_json
from klamm.dashboards.orders import Orders
from klamm.decoders.text import printable
from klamm.rules.file.rule_file import load
from klamm.rules.rule import Rule

USAGE = "klamm rules test RULES CAPTURE... [--plugin FILE]... [--seed N] [--json]"
SHOWN = 5  # clients, topics, or kinds of orders of a rule


def add_command(commands: Any) -> None:
    """Declare it."""
    text = "try each rule on captured traffic: its matches and orders"
    command = commands.add_parser("test", help=text, usage=USAGE)
    command.add_argument("files", nargs=1, metavar="RULES", help="a rule file")
    command.add_argument("captures", nargs="+", metavar="CAPTURE", help="files and folders")
    text = "a Python file with actions; repeatable"
    command.add_argument("--plugin", action="append", default=[], metavar="FILE", help=text)
    command.add_argument(
        "--seed", metavar="N", type=int, help="decides the rules' chances [the file's, or 0]"
    )
    command.add_argument("--json", action="store_true", help="one object a line for each rule")
    command.set_defaults(asked="rules test")


@telling
def run(arguments: argparse.Namespace) -> int:
    """0 fine, 1 mistakes in the rules or damage in the captures, 2 wrong usage."""
    found = load(arguments.files[0], arguments.plugin, time.time_ns())
    if found.mistakes:
        for mistake in found.mistakes:
            print(mistake)
        return 1
    rows = reading(captures(arguments.captures))
    seed = found.seed if arguments.seed is None else arguments.seed
    orders = {rule.name: Orders() for rule in found.rules}
    trial = Trial(
        found.rules, seed or 0, lambda outcome, frame, order: orders[outcome.rule.name].take(frame, order)
    )
    trial.run(rows)
    for outcome, place in zip(trial.outcomes, found.places, strict=True):
        if arguments.json:
            print_json(_object(outcome, orders[outcome.rule.name], trial))
        else:
            print(printable(f"{outcome.rule.name} ({place})"))
            for title, text in _lines(outcome, orders[outcome.rule.name], trial):
                print(printable(f"  {title:<8}{text}"))
            print()
    if trial.sessions_unknown and not arguments.json:
        print(
            f"{trial.sessions_unknown} Fetch requests go on with sessions that began before the capture, so"
        )
        print("their topics are not known. A running klamm would have made these clients begin anew.")
    for rule, reason in dict.fromkeys(trial.engine.failed):
        say(f"{rule or 'a rule'}: {reason}", 1)
    return report_problems(rows)


def _lines(outcome: Outcome, orders: Orders, trial: Trial) -> Iterator[tuple[str, str]]:
    if not outcome.matches:
        yield "matched", f"nothing: {instead(outcome, trial.flows)}"
        return
    what = "connection" if outcome.rule.event == "connect" else "frame"
    first, last = _time(outcome.first_ns), _time(outcome.last_ns)
    when = f"at {first}" if first == last else f"{first} to {last}"
    yield "matched", f"{_many(outcome.matches, what)}, {when}; acted on {outcome.hits}"
    yield "of", _counted({_client(*client): count for client, count in outcome.clients.items()})
    if outcome.rule.dry:
        yield "would", "do nothing but count: it is dry"
    elif outcome.hits:
        for text in orders.lines():
            yield "would", text
    if outcome.failures:
        yield "failed", f"{_many(outcome.failures, 'time')}: an action could not be carried out"


def instead(outcome: Outcome, flows: Mapping[Flow, int]) -> str:
    """The reason why a rule matched nothing: the selectors that no frame passes, and the values that were
    there.
    """
    rule = outcome.rule
    if not rule.enabled:
        return "it is not enabled"
    if rule.event == "connect":
        return "no connection of these clients, brokers and clusters opened"
    left = dict(flows)
    for passes, what, selector in _selectors(rule):
        kept = {flow: count for flow, count in left.items() if passes(flow)}
        if not kept:
            there: Counter[str] = Counter()
            for flow, count in left.items():
                if flow.side == rule.side:
                    there[selector(flow)] += count
            return f"{what}; there were {_counted(there)}" if there else f"the capture has no {rule.side}s"
        left = kept
    return _in_bodies(outcome, sum(left.values()))


def _in_bodies(outcome: Outcome, frames: int) -> str:
    rule = outcome.rule
    about = _many(outcome.asked or frames, "frame") + (" of its APIs" if rule.keys else "")
    if not rule.reads or not outcome.asked:
        waits = (
            "while the rules it waits for allow it"
            if rule.when.once_hit or rule.when.until_hit
            else "in its time"
        )
        return f"{about}, none {waits}"
    if rule.group is not None and not any(map(rule.group, outcome.groups)):
        return f"{about}, none of the group {rule.group}; there were {_counted(outcome.groups)}"
    if rule.topic is not None and not any(map(rule.topic, outcome.topics)):
        return f"{about}, none about the topic {rule.topic}; there were {_counted(outcome.topics)}"
    if rule.where is not None:
        return f"{about}, and for none it holds that {rule.where}"
    return f"{about}, none with these partitions"


def _selectors(rule: Rule) -> Iterator[tuple[Callable[[Flow], bool], str, Callable[[Flow], str]]]:
    """For each selector of a rule: whether a flow passes; the message if none does; the flow's value for
    it.
    """
    names = [api_name(key) for key in sorted(rule.keys)]
    side = f"{rule.side} of {' or '.join(names) if len(names) <= SHOWN else f'these {len(names)} APIs'}"
    yield (
        lambda flow: flow.side == rule.side and (not rule.keys or flow.api_key in rule.keys),
        f"no {side}",
        lambda flow: api_name(flow.api_key),
    )
    yield (
        lambda flow: flow.version in rule.versions,
        f"none of the versions {rule.versions}",
        lambda flow: f"{api_name(flow.api_key)} v{flow.version}",
    )
    if rule.client is not None:
        glob = rule.client
        yield (
            lambda flow: glob(flow.host) or (flow.client_id is not None and glob(flow.client_id)),
            f"none from the client {glob}",
            lambda flow: _client(flow.client_id, flow.host),
        )
    if rule.principal is not None:
        principal = rule.principal
        yield (
            lambda flow: principal(*filter(None, [flow.principal])),
            f"none of the principal {principal}",
            lambda flow: printable(flow.principal or "no principal"),
        )
    if rule.broker:
        yield (
            lambda flow: flow.broker in rule.broker,
            f"none to the broker {', '.join(sorted(rule.broker))}",
            lambda flow: f"broker {flow.broker}",
        )
    if rule.cluster is not None:
        cluster = rule.cluster
        yield (
            lambda flow: cluster(flow.cluster),
            f"none of the cluster {cluster}",
            lambda flow: flow.cluster,
        )


def _object(outcome: Outcome, orders: Orders, trial: Trial) -> dict[str, Any]:
    rule = outcome.rule
    found: dict[str, Any] = {"rule": rule.name, "matches": outcome.matches, "hits": outcome.hits}
    if outcome.failures:
        found["failures"] = outcome.failures
    if not outcome.matches:
        return {**found, "instead": instead(outcome, trial.flows)}
    clients = [
        {"client_id": client_id, "host": host, "matches": count}
        for (client_id, host), count in outcome.clients.most_common()
    ]
    times = {"first": round(outcome.first_ns / 1e9, 6), "last": round(outcome.last_ns / 1e9, 6)}
    return {**found, **times, "clients": clients, "orders": list(orders.lines())}


def _client(client_id: str | None, host: str) -> str:
    return host if client_id is None else f"{printable(client_id)} at {host}"


def _counted(found: Mapping[str, int]) -> str:
    """The most frequent ones."""
    most = Counter(found).most_common(SHOWN)
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(f"{printable(name)} ({count})" for name, count in most) + more or "none"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _time(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
