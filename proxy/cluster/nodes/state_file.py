"""The nodes of one cluster and their ports, kept in a small file over a restart of klamm.

Behind SASL klamm has no credentials to ask for the brokers. Without the file it would not know, after a
restart, to which nodes the ports lead that clients use.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from klamm.decoders.text import valid_text
from klamm.proxy.session.rewriting.topology import Node

FORMAT = 1
LARGEST = 16 << 20  # bytes; a node takes about 200, and has a port of its own

Id = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Port = Annotated[int, Meta(ge=1, le=65535)]


class KeptNode(msgspec.Struct, frozen=True):
    """`host` and `port` are what the cluster advertised."""

    kind: Literal["broker", "controller"]
    node_id: Id
    host: Annotated[str, Meta(min_length=1, max_length=253)]
    port: Port
    listen_port: Port


def kept_node(node: Node) -> KeptNode | None:
    """None if the node has no port, or an address that no client could use."""
    if valid_text(node.host) != node.host:
        return None
    values = (node.key.kind, node.key.node_id, node.host, node.port, node.listen_port)
    try:
        return msgspec.convert(dict(zip(KeptNode.__struct_fields__, values, strict=True)), KeptNode)
    except msgspec.ValidationError:
        return None


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file. `cluster_id` is None if the cluster did not give it."""

    format: int = FORMAT
    cluster: str
    cluster_id: str | None
    bootstrap: list[str]
    nodes: list[KeptNode]


# msgspec builds what it knows of a type at its first use, which crashes where two threads have it together:
# here no thread runs yet, and `write` may run in one for each cluster.
READER = msgspec.json.Decoder(Kept)


class Unusable(Exception):
    """The file cannot be used; the text says why."""


class Format(msgspec.Struct):
    """The one field that every version of the file has."""

    format: int


def folder_by_default(environment: Mapping[str, str]) -> Path:
    """systemd's StateDirectory, else that of the XDG specification."""
    given = environment.get("STATE_DIRECTORY", "").split(":")[0]
    if given:
        return Path(given)
    home = Path(environment.get("HOME") or "/")  # a container may have neither HOME nor a user with a name
    return Path(environment.get("XDG_STATE_HOME") or home / ".local" / "state") / "klamm"


def file_of(folder: Path, cluster: str, bootstrap_port: int) -> Path:
    """Named by the port too: two klamms on one machine may use one cluster name, but not one port."""
    return folder / f"{cluster}-{bootstrap_port}.json"


def prepare(folder: Path) -> None:
    """Make the folder if it is missing. Raises OSError if no file can be written into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(0, "it cannot be written to", str(folder))


def read(file: Path, one_port: bool = False) -> Kept | None:
    """None if there is no file. `one_port`: nodes may share a port. Raises Unusable."""
    try:
        data = _bytes_of(file)
        written = msgspec.json.decode(data, type=Format).format
        if written != FORMAT:
            raise Unusable(f"its format is {written}, this klamm reads {FORMAT}")
        kept = READER.decode(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unusable(error.strerror or str(error)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unusable(str(error)) from error
    for name, values in (
        ("node", [(node.kind, node.node_id) for node in kept.nodes]),
        ("port", [] if one_port else [node.listen_port for node in kept.nodes]),
    ):
        if len(set(values)) < len(values):
            raise Unusable(f"it names a {name} twice")
    return kept


def _bytes_of(file: Path) -> bytes:
    """Raises Unusable if it is no regular file, or too large."""
    opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe does not block
    with os.fdopen(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise Unusable("it is no regular file")
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Unusable(f"it is larger than {LARGEST >> 20} MiB")
    return data


def write(file: Path, kept: Kept) -> None:
    """Write the file, whole or not at all, readable by its owner only. Raises OSError."""
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(opened, "wb") as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
        stream.flush()
        os.fsync(opened)
    new.replace(file)
