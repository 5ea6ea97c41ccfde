"""The host names of a cluster whose nodes share one port: one to bootstrap, and one for each node. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from klamm.proxy.session.rewriting.topology import NodeKey

PLACE = "$(node)"
NODE = re.compile(r"(controller-)?(0|[1-9][0-9]{0,9})")
NUMBER = re.compile(r"[0-9]+")
LAST_ID = 2**31 - 1  # a node id is an int32


class NodeNames:
    """`nodes` has `$(node)` once: it stands for `2` of broker 2, and for `controller-2` of controller 2.
    `port` is the one that clients are told.
    """

    def __init__(self, bootstrap: str, nodes: str, port: int) -> None:
        self.bootstrap, self.nodes, self.port = bootstrap.lower(), nodes.lower(), port
        self.before, _, self.after = self.nodes.partition(PLACE)

    def host(self, key: NodeKey) -> str:
        """The name of a node."""
        node = str(key.node_id) if key.kind == "broker" else f"controller-{key.node_id}"
        return f"{self.before}{node}{self.after}"

    def node(self, host: str) -> NodeKey | None:
        """The node with this name, in lower case; None if it is the name of no node."""
        if not (host.startswith(self.before) and host.endswith(self.after)):
            return None
        found = NODE.fullmatch(host, len(self.before), max(len(self.before), len(host) - len(self.after)))
        if found is None or int(found[2]) > LAST_ID:
            return None
        return NodeKey("controller" if found[1] else "broker", int(found[2]))

    def has(self, host: str) -> bool:
        """Is it one of these names?"""
        return host == self.bootstrap or self.node(host) is not None


def common_name(one: NodeNames, other: NodeNames) -> str | None:
    """A name that both have; None if no name can be of both.

    No digit stands beside `$(node)`. So where two patterns meet, they meet in the ids that are written out in
    one of them, or in each id.
    """
    for these, those in ((one, other), (other, one)):
        for name in _examples(these, those):
            if those.has(name):
                return name
    return None


def _examples(these: NodeNames, those: NodeNames) -> Iterator[str]:
    """The names of `these` that may be of `those`."""
    yield these.bootstrap
    for number in dict.fromkeys(["0", *NUMBER.findall(those.nodes)]):
        if int(number) <= LAST_ID:
            yield these.host(NodeKey("broker", int(number)))
            yield these.host(NodeKey("controller", int(number)))
