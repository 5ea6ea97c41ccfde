"""Rules on connections as they open: no frame has been read then, and no client id is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from ipaddress import ip_address, ip_network
from typing import Any

from klamm.rules.expressions.tree import Name, Node
from klamm.rules.file.reach import SIDES, Fault, Steps

OF_FRAMES = ("api", "versions", "side", "topic", "partition", "group")
KNOWN = ("cluster", "broker", "client", "client_port", "connection", "principal")  # fields of expressions
UNTOLD = ("client", "topic", "group")  # of `per`
GLOB = re.compile(r"\[[^]]*\]|[*?]")
OF_ADDRESSES = re.compile(r"[0-9a-f.:]*(%.*)?")
ON_REQUESTS = "the rule acts on the client's first request"


def connect_faults(rule: Any, steps: Steps) -> Iterator[Fault]:
    """The keys of a rule that do not work for a connection that opens."""
    for key in OF_FRAMES:
        if getattr(rule, key) not in ((), None):
            yield (key,), "connections that open have none: leave it out"
    for path, action in steps:
        if "connect" not in action.sides:
            sides = " and ".join(f"{side}s" for side in SIDES if side in action.sides)
            yield path, f"{action.name} works on {sides}, not on connections that open"
    unmatched = next((pattern for pattern in rule.client if not is_address(pattern)), None)
    if unmatched is not None and is_network(unmatched):
        yield ("client",), f"{unmatched!r} is a network: write patterns of its addresses, such as 10.1.*"
    elif unmatched is not None:
        yield ("client",), f"{unmatched!r} is no address, and {_instead(steps)}"
    if rule.where is not None:
        yield from _where_faults(rule.where.tree)
    if rule.per in UNTOLD:
        untold = f"a connection that opens has no {rule.per} yet"
        yield ("per",), f"{untold}: leave it out, or count per connection"


def is_address(pattern: str) -> bool:
    """Can a client's address be like this? With `!` in front, the same is asked of the rest."""
    text = pattern.removeprefix("!")
    if GLOB.search(text):
        return OF_ADDRESSES.fullmatch(GLOB.sub("", text)) is not None
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_network(pattern: str) -> bool:
    """Such as 10.0.0.0/8."""
    try:
        ip_network(pattern.removeprefix("!"), strict=False)
    except ValueError:
        return False
    return True


def _instead(steps: Steps) -> str:
    """How to write a rule that finds a client by its id."""
    alone = [action.name for _, action in steps if "request" not in action.sides]
    advice = "leave event: connect out"
    if alone:
        place = f"in place of {' and '.join(alone)}, without event: connect"
        advice = f"write down: true or disconnect: {{when: before}} {place}"
    address = "or write an address, such as 10.0.0.7"
    return f"a connection that opens has not said its client id: {advice}, and {ON_REQUESTS}; {address}"


def _where_faults(tree: Any) -> Iterator[Fault]:
    unknown = next((name for name in _names(tree) if name.name not in KNOWN), None)
    if unknown is not None:
        known = f"only {', '.join(KNOWN)} are: ask for it on frames, without event: connect"
        where = f"{unknown.name} is not known as a connection opens (column {unknown.column})"
        yield ("where",), f"{where}, {known}"


def _names(tree: Any) -> Iterator[Name]:
    """Every name in an expression that is no constant's."""
    if isinstance(tree, tuple):
        for each in tree:
            yield from _names(each)
    elif isinstance(tree, Name):
        yield tree
    elif isinstance(tree, Node):
        for f in fields(tree):
            yield from _names(getattr(tree, f.name))
