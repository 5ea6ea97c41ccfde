"""Keeps the nodes of one cluster over a restart of klamm: reads and writes the state file."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from threading import Lock

from klamm.proxy import config
from klamm.proxy.cluster.nodes import state_file
from klamm.proxy.cluster.nodes.state_file import Kept, Unusable, kept_node
from klamm.proxy.config_types import AUTO
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.log.events import Level
from klamm.proxy.session.rewriting.topology import Node, NodeKey, Topology


class Memory:
    """`usable`: files can be written into the folder. If they cannot, that is logged once."""

    def __init__(self, folder: Path, settings: config.Cluster, log: EventLog) -> None:
        self.file = state_file.file_of(folder, settings.name, settings.listen.first)
        self.cluster, self.log, self.one_port = settings.name, log, settings.names is not None
        self.bootstrap = sorted(map(str, settings.bootstrap))
        self.seen: object = None  # the topology that was kept last
        self.wanted: tuple[list[Node], str | None] = [], None  # nodes, and the id of their cluster
        self.written: Kept | None = None
        self.failure: str | None = None
        self.writing = Lock()
        self.usable = self._prepared()

    def recall(self, topology: Topology, cluster_id: str | None) -> None:
        """Give the nodes of the run before to `topology`, unless they are of another cluster."""
        try:
            kept = state_file.read(self.file, self.one_port)
        except Unusable as error:
            message = f"{self.file} cannot be used: {error}; klamm goes on without it, and writes it anew"
            self._say(message, "warning")
            return
        if kept is None:
            return
        if other := self._another(kept, cluster_id):
            self._say(f"{self.file} is not used: {other}")
            return
        self.written = kept
        for node in kept.nodes:
            key = NodeKey(node.kind, node.node_id)
            topology.remember(Node(key, node.host, node.port, node.listen_port))

    async def keep(self, topology: Topology) -> None:
        """Write the nodes of the topology, in another thread, if the file does not have them yet."""
        if not self.usable or (self.seen == _seen(topology) and self.failure is None):
            return
        self.seen = _seen(topology)
        self.wanted = _named(topology), topology.cluster_id
        failure = await asyncio.to_thread(self._write)
        if failure is not None and failure != self.failure:
            message = f"the nodes' ports cannot be remembered in {self.file}: {failure}; trying again"
            self._say(message, "warning")
        elif failure is None and self.failure is not None:
            self._say(f"the nodes' ports are remembered in {self.file} again")
        self.failure = failure

    def keep_now(self, topology: Topology) -> None:
        """Write the nodes of the topology before klamm ends."""
        self.wanted = _named(topology), topology.cluster_id
        if failure := self._write():
            self._say(f"the nodes' ports cannot be remembered in {self.file}: {failure}", "warning")

    def _write(self) -> str | None:
        """Write the newest `wanted`; threads take turns. Gives the reason if that fails."""
        with self.writing:
            nodes, cluster_id = self.wanted
            kept = [
                each
                for node in sorted(nodes, key=lambda node: node.key)
                if (each := kept_node(node)) is not None
            ]
            wanted = Kept(cluster=self.cluster, cluster_id=cluster_id, bootstrap=self.bootstrap, nodes=kept)
            if not self.usable or not kept or wanted == self.written:
                return None
            try:
                state_file.write(self.file, wanted)
            except OSError as error:
                return error.strerror or str(error)
            self.written = wanted
            return None

    def _another(self, kept: Kept, cluster_id: str | None) -> str | None:
        """The reason why the file is of another cluster than this one; None if it is of this one."""
        if kept.cluster != self.cluster:
            return f"it is of cluster {kept.cluster}"
        if kept.cluster_id is not None and cluster_id is not None:
            other = f"it is of the cluster with the id {kept.cluster_id}, this one has {cluster_id}"
            return None if kept.cluster_id == cluster_id else other
        if not set(kept.bootstrap) & set(self.bootstrap):
            return f"it is of other bootstrap servers: {', '.join(kept.bootstrap)}"
        return None

    def _prepared(self) -> bool:
        try:
            state_file.prepare(self.file.parent)
        except OSError as error:
            why = error.strerror or str(error)
            self._say(
                f"the nodes' ports are not remembered over a restart: {self.file.parent}: {why}; "
                "name a folder with --state DIR, or say --state none",
                "warning",
            )
            return False
        return True

    def _say(self, message: str, level: Level = "info") -> None:
        self.log.event("state", message, level, cluster=self.cluster, per=message)


def _seen(topology: Topology) -> object:
    """Changes whenever what is kept of it does."""
    return topology.revision, topology.cluster_id


def _named(topology: Topology) -> list[Node]:
    """Copies of the nodes that have a port."""
    nodes = *topology.nodes.values(), *topology.unnamed()
    return [replace(node) for node in nodes if node.listen_port is not None]


def memory_of(state: config.State, settings: config.Cluster, log: EventLog) -> Memory | None:
    """The saved nodes of a cluster. None if klamm takes any free ports: saving them would be of no use."""
    if state.folder is None or not settings.listen.first:
        return None
    folder = state_file.folder_by_default(os.environ) if state.folder == AUTO else Path(state.folder)
    return Memory(folder, settings, log)
