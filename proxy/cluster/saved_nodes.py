"""Remembers the nodes of one cluster over a restart of klamm: when the state file is read and written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Lock

from klamm.proxy import config
from klamm.proxy.cluster import state_file
from klamm.proxy.cluster.state_file import Kept, Unusable, kept_node
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.log.events import Level
from klamm.proxy.session.topology import Node, NodeKey, Topology


class Memory:
    """`usable`: files can be written into the folder. Where they cannot, that is said once."""

    def __init__(self, folder: Path, settings: config.Cluster, log: EventLog) -> None:
        self.file = state_file.file_of(folder, settings.name, settings.listen.first)
        self.cluster, self.log = settings.name, log
        self.bootstrap = sorted(map(str, settings.bootstrap))
        self.wanted: Kept | None = None
        self.written: Kept | None = None
        self.failure: str | None = None
        self.writing = Lock()
        self.usable = self._prepared()

    def recall(self, topology: Topology, cluster_id: str | None) -> None:
        """Give the nodes of the run before to `topology`, unless they are of another cluster."""
        try:
            kept = state_file.read(self.file)
        except Unusable as error:
            said = f"{self.file} cannot be used: {error}; klamm goes on without it, and writes it anew"
            self._say(said, "warning")
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
        """Write what the topology is by now, in another thread, where it differs from what is written."""
        self._want(topology)
        if not self.usable or self.wanted == self.written:
            return
        failure = await asyncio.to_thread(self._write)
        if failure is not None and failure != self.failure:
            said = f"the nodes' ports cannot be remembered in {self.file}: {failure}; trying again"
            self._say(said, "warning")
        elif failure is None and self.failure is not None:
            self._say(f"the nodes' ports are remembered in {self.file} again")
        self.failure = failure

    def keep_now(self, topology: Topology) -> None:
        """Before klamm ends."""
        self._want(topology)
        if failure := self._write():
            self._say(f"the nodes' ports cannot be remembered in {self.file}: {failure}", "warning")

    def _want(self, topology: Topology) -> None:
        nodes = sorted([*topology.nodes.values(), *topology.unnamed()], key=lambda node: node.key)
        kept = [each for node in nodes if (each := kept_node(node)) is not None]
        if kept:
            self.wanted = Kept(
                cluster=self.cluster, cluster_id=topology.cluster_id, bootstrap=self.bootstrap, nodes=kept
            )

    def _write(self) -> str | None:
        """What is wanted by now, whichever thread is first; why it failed."""
        with self.writing:
            wanted = self.wanted
            if not self.usable or wanted is None or wanted == self.written:
                return None
            try:
                state_file.write(self.file, wanted)
            except OSError as error:
                return error.strerror or str(error)
            self.written = wanted
            return None

    def _another(self, kept: Kept, cluster_id: str | None) -> str | None:
        """Why the file is of another cluster than this one."""
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
