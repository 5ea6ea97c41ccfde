"""Text, of the command line or of a YAML scalar, to the values of proxy/config.py.

Each function raises ValueError with a reason that reads after the name of the option or key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from klamm.proxy.config import (
    ALL_APIS,
    AUTO,
    Address,
    Admin,
    ApiName,
    Bytes,
    Capture,
    ClusterName,
    Count,
    Filter,
    Folder,
    Host,
    InputFile,
    Listen,
    OutputFile,
    Port,
    Rules,
    Seconds,
    State,
    StateFolder,
    Tls,
)
from klamm.rules.expressions import ExpressionError, parse
from klamm.settings.amounts import SIZES, amount, whole
from klamm.settings.nearest import suggestion
from klamm.settings.typed_yaml import Scalar, truth

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
TLS_WORDS = {"SSL", "SASL_SSL"}  # as Kafka writes them before ://
LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
BETWEEN = re.compile(r"\s*;\s*|(?<=[0-9])\s+")  # addresses, where commas are due
FEWEST_PORTS = 3  # bootstrap, a broker, a controller
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def host(text: str) -> Host:
    """A name, an IPv4 address, or an IPv6 address with or without brackets."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if not inner:
        raise ValueError("no host")
    if ":" in inner or re.fullmatch(r"[0-9.]+", inner):
        try:
            return Host(str(ip_address(inner)))
        except ValueError:
            raise ValueError(_no_ip_address(inner)) from None
    labels = inner.removesuffix(".").split(".")
    if len(inner) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{inner!r} is not a host name: it takes letters, digits, '-', '_' and dots")
    return Host(inner)


def _no_ip_address(text: str) -> str:
    name, _, number = text.rpartition(":")
    if number.isdigit() and ":" not in name and not name.isdigit():
        return f"a host without a port is due: write it as {name}"
    return f"{text!r} is not an IP address"


def _split(text: str, example: str) -> tuple[Host, str]:
    """The host and what stands after its colon."""
    protocol, mark, rest = text.partition("://")
    if mark:
        wants_tls = protocol.upper() in TLS_WORDS
        advice = "; for TLS say --upstream-tls, or tls: true in the file" if wants_tls else ""
        raise ValueError(f"write {rest!r} without {protocol + mark!r}{advice}")
    if BETWEEN.search(text):
        raise ValueError(f"write commas between addresses: {BETWEEN.sub(',', text)}")
    before, mark, after = text.rpartition(":")
    if text.count(":") > 1 and not before.startswith("["):
        numbers = example.rpartition(":")[2]
        raise ValueError(f"an IPv6 address stands in brackets here: write it as [::1]:{numbers}")
    if not mark or text.endswith("]"):
        raise ValueError(f"{text!r} has no port: write it as {example}")
    return host(before), after


def port(text: str) -> Port:
    """1 to 65535."""
    return _port(text, lowest=1)


def _port(text: str, lowest: int) -> Port:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a port number")
    if not lowest <= int(text) <= 65535:
        raise ValueError(f"port {text} is outside {lowest}-65535")
    return Port(int(text))


def address(text: str) -> Address:
    """HOST:PORT of something to connect to."""
    name, number = _split(text, "kafka-1:9092")
    return Address(name, port(number))


def listen_address(text: str) -> Address:
    """HOST:PORT to listen on; port 0 is a free one."""
    name, number = _split(text, "127.0.0.1:19091")
    return Address(name, _port(number, lowest=0))


def listen(text: str) -> Listen:
    """HOST:FIRST or HOST:FIRST-LAST; HOST:0 takes ports that are free."""
    if text.startswith(":") and not text.startswith("::"):
        raise ValueError(f"no host: write 0.0.0.0{text} to listen on every interface")
    name, numbers = _split(text, "127.0.0.1:19092-19191")
    first_text, mark, last_text = numbers.partition("-")
    if numbers == "0":
        return Listen(name, 0)
    first = port(first_text)
    last = port(last_text) if mark else None
    if last is not None and last < first:
        raise ValueError(f"the range {numbers} is empty: its last port comes before its first")
    found = Listen(name, first, last)
    if len(found.ports) < FEWEST_PORTS:
        room = "1 port" if len(found.ports) == 1 else f"{len(found.ports)} ports"
        raise ValueError(f"{numbers} has room for {room}, and needs {FEWEST_PORTS} at least")
    return found


def admin(text: str) -> Admin:
    """HOST:PORT, or none."""
    return Admin(None) if text in ("none", "off", "false") else Admin(listen_address(text))


def tls(text: str) -> Tls | None:
    """true is TLS with the system's certificates."""
    return Tls() if truth(text) else None


def seconds(text: str) -> Seconds:
    """500ms, 2s, 1m, 1h; a bare number is seconds. More than none."""
    found = amount(text, {"": 1.0, **SECONDS}, "a duration", "500ms or 2s")
    if found <= 0:
        raise ValueError("must be more than 0")
    return Seconds(found)


def size(text: str) -> Bytes:
    """16MiB, 64kB; a bare number is bytes. More than none."""
    found = int(amount(text, SIZES, "a size", "16MiB or 65536"))
    if found <= 0:
        raise ValueError("must be more than 0")
    return Bytes(found)


def count(text: str) -> Count:
    """A whole number from 0."""
    return Count(whole(text))


def api_name(text: str) -> ApiName:
    """The newest name of an API, from any of its names in any case; or `all`."""
    from klamm.decoders import API  # the tables are not needed to say --help

    if text.casefold() == ALL_APIS:
        return ALL_APIS
    found = API.get(text)
    if found is None:
        raise ValueError(f"unknown API {text!r}{suggestion(text, [*(api.name for api in API), ALL_APIS])}")
    return ApiName(found.name)


def cluster_name(text: str) -> ClusterName:
    """Letters, digits, '.', '_' and '-'."""
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a name: it takes letters, digits, '.', '_' and '-'")
    return ClusterName(text)


def input_file(folder: Path) -> Callable[[str], InputFile]:
    """Paths of files that are there and can be read, as seen from a folder."""

    def parse(text: str) -> InputFile:
        path = folder / Path(text).expanduser()
        try:
            path.open("rb").close()
        except OSError as problem:
            raise ValueError(f"cannot read {path}: {problem.strerror}") from None
        return InputFile(str(path))

    return parse


def output_file(folder: Path) -> Callable[[str], OutputFile]:
    """Paths of files whose folder is there."""

    def parse(text: str) -> OutputFile:
        path = folder / Path(text).expanduser()
        if path.is_dir():
            raise ValueError(f"cannot write {path}: it is a folder")
        if not path.parent.is_dir():
            raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
        return OutputFile(str(path))

    return parse


def output_folder(folder: Path) -> Callable[[str], Folder]:
    """Paths of folders that are there, or can be made."""

    def parse(text: str) -> Folder:
        path = folder / Path(text).expanduser()
        if path.exists() and not path.is_dir():
            raise ValueError(f"cannot write into {path}: it is no folder")
        return Folder(str(path))

    return parse


def state_folder(folder: Path) -> Callable[[str], StateFolder | None]:
    """A folder as above, or one of the words `auto` and `none`."""
    words = {AUTO: AUTO, "none": None, "off": None, "false": None}
    as_folder = output_folder(folder)
    return lambda text: words[text] if text in words else StateFolder(as_folder(text))


def expression(text: str) -> Filter:
    """A condition that can hold for some API."""
    try:
        parse(text).apis()
    except ExpressionError as wrong:
        raise ValueError(str(wrong)) from None
    return Filter(text)


def scalars(folder: Path) -> dict[Any, Scalar]:
    """Every type of proxy/config.py that is written as one scalar; relative paths are seen from `folder`."""
    return {
        Address: Scalar(address, "HOST:PORT"),
        Listen: Scalar(listen, "HOST:FIRST[-LAST]"),
        Host: Scalar(host, "a host"),
        Port: Scalar(port, "a port"),
        Count: Scalar(count, "a whole number"),
        Seconds: Scalar(seconds, "a duration such as 500ms"),
        Bytes: Scalar(size, "a size such as 16MiB"),
        ApiName: Scalar(api_name, "an API"),
        ClusterName: Scalar(cluster_name, "a name"),
        InputFile: Scalar(input_file(folder), "a file"),
        OutputFile: Scalar(output_file(folder), "a file"),
        Folder: Scalar(output_folder(folder), "a folder"),
        StateFolder: Scalar(state_folder(folder), "a folder, auto or none"),
        State: Scalar(lambda text: State(state_folder(folder)(text)), "a folder, auto or none"),
        Filter: Scalar(expression, "an expression"),
        Admin: Scalar(admin, "HOST:PORT or none"),
        Tls: Scalar(tls, "true or false"),
        Rules: Scalar(lambda text: Rules(input_file(folder)(text)), "a file"),
        Capture: Scalar(lambda text: Capture(output_folder(folder)(text)), "a folder"),
    }
