"""Starts the proxies beside which klamm is measured, and the floors: pumps that carry bytes and read none."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.peer import HOST, Absent, Address, Peer, free_ports, launch
from benchmarks.traffic import frames
from benchmarks.traffic import tls as load_tls
from benchmarks.traffic.tls import Tls
from tests.brokers.jars import JARS, compiled

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "make bench-peers"  # brings what it needs, and measures
SPLICE, PUMP = "splice", "c-pump"
HAPROXY, HAPROXY_2, HAPROXY_SPLICE = "haproxy", "haproxy-2-threads", "haproxy-splice"
TOXIPROXY = "toxiproxy"
KROXYLICIOUS, KROXYLICIOUS_READING = "kroxylicious", "kroxylicious-reading"

_HAPROXY_CONFIG = """\
global
    nbthread {threads}
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
{more}"""
_HAPROXY_LISTENER = """\
listen broker-{port}
    bind {host}:{port}{bind}
    server broker {broker[0]}:{broker[1]}{server}
"""
_HAPROXIES = {  # threads, and lines of its configuration
    HAPROXY: (1, ""),
    HAPROXY_2: (2, ""),
    HAPROXY_SPLICE: (1, "    option splice-request\n    option splice-response\n"),
}


def start_haproxy(
    brokers: Sequence[Address], folder: Path, cpus: set[int], tls: Tls | None = None, name: str = HAPROXY
) -> tuple[Peer, list[int]]:
    """HAProxy with a port for each broker. Raises Absent."""
    program = _program("haproxy", "haproxy")
    first = free_ports(len(brokers))
    ports = [*range(first, first + len(brokers))]
    bind = server = ""
    if tls is not None:
        bind = f" ssl crt {tls.identity}"
    if tls is not None and tls.upstream:  # a full handshake for each connection, as klamm's are
        server = f" ssl verify required ca-file {tls.authority} verifyhost {load_tls.NAME} no-ssl-reuse"
    threads, more = _HAPROXIES[name]
    head = _HAPROXY_CONFIG.format(threads=threads, more=more)
    listeners = [
        _HAPROXY_LISTENER.format(host=HOST, port=port, broker=broker, bind=bind, server=server)
        for port, broker in zip(ports, brokers, strict=True)
    ]
    config = folder / f"{name}.cfg"
    config.write_text("".join([head, *listeners]))
    return launch(name, (HOST, first), [program, "-db", "-f", str(config)], folder, cpus), ports


def _haproxy(name: str, broker: Address, folder: Path, cpus: set[int], tls: Tls | None) -> Peer:
    return start_haproxy([broker], folder, cpus, tls, name)[0]


def _splice(broker: Address, folder: Path, cpus: set[int], tls: Tls | None) -> Peer:
    port = free_ports(1)
    command = [sys.executable, "-m", "benchmarks.splice", str(port), str(broker[1])]
    return launch(SPLICE, (HOST, port), command, folder, cpus)


def _pump(broker: Address, folder: Path, cpus: set[int], tls: Tls | None) -> Peer:
    program, source = folder / PUMP, Path(__file__).with_name("pump.c")
    subprocess.run([_program("gcc", "gcc"), "-O2", "-o", program, source], check=True)
    port = free_ports(1)
    return launch(PUMP, (HOST, port), [str(program), str(port), str(broker[1])], folder, cpus)


def _toxiproxy(broker: Address, folder: Path, cpus: set[int], tls: Tls | None) -> Peer:
    program = ROOT / ".go" / "toxiproxy" / "server"
    if not program.exists():
        raise Absent(f"it is not there: {COMMAND} brings it")
    first = free_ports(2)
    config, listen = folder / f"{TOXIPROXY}.json", f"{HOST}:{first}"
    proxy = {"name": "broker", "listen": listen, "upstream": f"{broker[0]}:{broker[1]}", "enabled": True}
    config.write_text(json.dumps([proxy]))
    command = [str(program), "-host", HOST, "-port", str(first + 1), "-config", str(config)]
    return launch(TOXIPROXY, (HOST, first), command, folder, cpus, {"LOG_LEVEL": "error"})


_KROXYLICIOUS_CONFIG = """\
virtualClusters:
  - name: bench
    targetCluster: {{bootstrapServers: "{broker[0]}:{broker[1]}"}}
    gateways:
      - name: default
        portIdentifiesNode:
          bootstrapAddress: "{host}:{port}"
          nodeIdRanges: [{{name: all, start: {node}, end: {node}}}]
"""
_READING = """\
filterDefinitions: [{name: reading, type: Reading}]
defaultFilters: [reading]
"""
_COMPILED_S = 3.0  # within which a JVM has compiled what a row runs


def _kroxylicious(name: str, broker: Address, folder: Path, cpus: set[int], tls: Tls | None) -> Peer:
    """With the heap and the garbage collector that Java chooses on this machine."""
    if not any((JARS / KROXYLICIOUS).glob("*.jar")):
        raise Absent(f"it is not there: {COMMAND} brings it")
    sources = Path(__file__).with_name(KROXYLICIOUS)
    classes = compiled(KROXYLICIOUS, sources)
    first = free_ports(2)  # for bootstrap, and for the only broker
    config = folder / f"{name}.yaml"
    text = _KROXYLICIOUS_CONFIG.format(broker=broker, host=HOST, port=first, node=frames.NODE_ID)
    config.write_text(text + (_READING if name == KROXYLICIOUS_READING else ""))
    paths = f"{classes}:{sources}:{JARS / KROXYLICIOUS}/*"
    command = [_program("java", "openjdk-17-jdk-headless"), "-cp", paths, "Kroxylicious", str(config)]
    peer = launch(name, (HOST, first), command, folder, cpus)
    peer.rewrites, peer.warm_up_s = True, _COMPILED_S
    return peer


def _program(name: str, package: str) -> str:
    """Raises Absent."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")
    if found is None:
        raise Absent(f"{name} is not installed (Debian package {package})")
    return found


STARTERS: Mapping[str, Callable[[Address, Path, set[int], Tls | None], Peer]] = {
    SPLICE: _splice,
    PUMP: _pump,
    **{name: partial(_haproxy, name) for name in _HAPROXIES},
    TOXIPROXY: _toxiproxy,
    **{name: partial(_kroxylicious, name) for name in (KROXYLICIOUS, KROXYLICIOUS_READING)},
}
