"""The types of settings, beside the dataclasses of config.py; cli/running/scalars.py reads each."""

from __future__ import annotations

from typing import Literal, NamedTuple, NewType

Seconds = NewType("Seconds", float)
Bytes = NewType("Bytes", int)
Port = NewType("Port", int)
Count = NewType("Count", int)  # from 0
ApiName = NewType("ApiName", str)  # as in Kafka's newest release, "Produce"; or "all"
ClusterName = NewType("ClusterName", str)
Host = NewType("Host", str)  # a name or an IP address, without brackets
InputFile = NewType("InputFile", str)  # absolute, or relative to the working directory
OutputFile = NewType("OutputFile", str)
Folder = NewType("Folder", str)
StateFolder = NewType("StateFolder", str)  # or the word auto
NodePattern = NewType("NodePattern", str)  # a host name with $(node) in it
ServerName = NewType("ServerName", str)  # a host name, no IP address
Text = NewType("Text", str)
Url = NewType("Url", str)  # https://, or http:// of this machine
Principal = NewType("Principal", str)  # of a certificate, "User:CN=orders"; or "*"
Network = NewType("Network", str)  # an IP address and the number of its leading bits that count
CollectorUrl = NewType("CollectorUrl", str)  # of any host
Share = NewType("Share", float)  # more than 0, 1 at most
Filter = NewType("Filter", str)  # an expression as in rules: docs/expressions.md

AUTO = StateFolder("auto")  # $STATE_DIRECTORY, or $XDG_STATE_HOME/klamm, or ~/.local/state/klamm
Role = Literal["full", "read_only"]
ALL_APIS = ApiName("all")
EVERY_PRINCIPAL = Principal("*")  # each that is not named
ROOM = 100  # ports of a listen range whose end is not given


class Address(NamedTuple):
    """A host (name, IPv4, or IPv6 without brackets) and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listen(NamedTuple):
    """Where clients find one cluster: the bootstrap port `first`, and after it a port for each node."""

    host: str = "127.0.0.1"
    first: int = 19092
    last: int | None = None
    """Inclusive; None leaves room for 100 ports."""

    @property
    def ports(self) -> range:
        """Every port of the range."""
        return range(self.first, min(self.first + ROOM - 1 if self.last is None else self.last, 65535) + 1)

    def __str__(self) -> str:
        return str(Address(self.host, self.first)) + ("" if self.last is None else f"-{self.last}")
