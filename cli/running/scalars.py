"""Text, of the command line or of a YAML scalar, to the values of proxy/config.py.

Each function raises ValueError with a reason that reads after the name of the option or key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_interface
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from klamm.cli.running.hosts import host, node_pattern, server_name, without_protocol
from klamm.proxy.config import Admin, Audit, Capture, Rules, State, Tls, Transparent
from klamm.proxy.config_types import (
    ALL_APIS,
    AUTO,
    EVERY_PRINCIPAL,
    Address,
    ApiName,
    Bytes,
    ClusterName,
    CollectorUrl,
    Count,
    Filter,
    Folder,
    Host,
    InputFile,
    Listen,
    Network,
    NodePattern,
    OutputFile,
    Port,
    Principal,
    Seconds,
    ServerName,
    Share,
    StateFolder,
    Text,
    Url,
)
from klamm.rules.expressions import ExpressionError, parse
from klamm.settings.amounts import SIZES, amount, whole
from klamm.settings.loopback import is_loopback
from klamm.settings.nearest import suggestion
from klamm.settings.typed_yaml import Scalar, truth

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
LONGEST_S = 100 * 365 * 86400.0  # no clock of the system waits for more than 292 years
BETWEEN = re.compile(r"\s*;\s*|(?<=[0-9])\s+")  # addresses, where commas are due
TWO_PORTS = re.compile(r"[^:]*[.g-zG-Z-][^:]*:[0-9]+:[0-9]+")  # behind what is not of an IPv6 address
FEWEST_PORTS = 3  # bootstrap, a broker, a controller
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _split(text: str, example: str) -> tuple[Host, str]:
    """The host and what stands after its colon."""
    without_protocol(text, "; for TLS say --upstream-tls, or tls: true in the file")
    if BETWEEN.search(text):
        raise ValueError(f"write commas between addresses: {BETWEEN.sub(',', text)}")
    before, mark, after = text.rpartition(":")
    if TWO_PORTS.fullmatch(text):
        raise ValueError(f"{text!r} has two ports: write commas between addresses, each as {example}")
    if text.count(":") > 1 and not before.startswith("["):
        numbers = example.rpartition(":")[2]
        raise ValueError(f"an IPv6 address stands in brackets here: write it as [::1]:{numbers}")
    if text.isdigit():
        at = example.rpartition(":")[0]
        raise ValueError(f"{text!r} is a port without a host: write it as {at}:{text}")
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


def transparent(text: str) -> Transparent | None:
    """true is any destination."""
    return Transparent() if truth(text) else None


def seconds(text: str) -> Seconds:
    """500ms, 2s, 1m, 1h; a bare number is seconds. More than none."""
    found = amount(text, {"": 1.0, **SECONDS}, "a duration", "500ms or 2s")
    if found <= 0:
        raise ValueError("must be more than 0")
    if found > LONGEST_S:
        raise ValueError("must be 100 years at most")
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


def _path(folder: Path, text: str) -> Path:
    """A path as seen from a folder. Raises ValueError where no file can have it."""
    try:
        path = folder / Path(text).expanduser()
        path.exists()
    except (OSError, RuntimeError) as problem:  # it is too long, or there is no such user
        raise ValueError(
            f"cannot use {text[:80]!r}: {getattr(problem, 'strerror', None) or problem}"
        ) from None
    return path


def input_file(folder: Path) -> Callable[[str], InputFile]:
    """Paths of files that are there and can be read, as seen from a folder."""

    def parse(text: str) -> InputFile:
        path = _path(folder, text)
        try:
            path.open("rb").close()
        except OSError as problem:
            raise ValueError(f"cannot read {path}: {problem.strerror}") from None
        return InputFile(str(path))

    return parse


def output_file(folder: Path) -> Callable[[str], OutputFile]:
    """Paths of files whose folder is there."""

    def parse(text: str) -> OutputFile:
        path = _path(folder, text)
        if path.is_dir():
            raise ValueError(f"cannot write {path}: it is a folder")
        if not path.parent.is_dir():
            raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
        return OutputFile(str(path))

    return parse


def output_folder(folder: Path) -> Callable[[str], Folder]:
    """Paths of folders that are there, or can be made."""

    def parse(text: str) -> Folder:
        path = _path(folder, text)
        if path.exists() and not path.is_dir():
            raise ValueError(f"cannot write into {path}: it is no folder")
        return Folder(str(path))

    return parse


def state_folder(folder: Path) -> Callable[[str], StateFolder | None]:
    """A folder as above, or one of the words `auto` and `none`."""
    words = {AUTO: AUTO, "none": None, "off": None, "false": None}
    as_folder = output_folder(folder)
    return lambda text: words[text] if text in words else StateFolder(as_folder(text))


def network(text: str) -> Network:
    """10.0.0.0/8, fd00::/8; an address alone is a network of its own."""
    try:
        found = ip_interface(text.strip("[]"))
    except ValueError:
        raise ValueError(f"{text!r} is not a network: write it as 10.0.0.0/8 or fd00::/8") from None
    if "/" in text and found.ip != found.network.network_address:
        raise ValueError(f"{text} has bits beyond its length: write {found.network}")
    return Network(str(found.network))


def text(text: str) -> Text:
    """Any, but for none."""
    if not text:
        raise ValueError("is empty")
    return Text(text)


def url(text: str) -> Url:
    """https, or http on this machine, where nobody else can read or change what is sent."""
    if _server(text).scheme == "http" and not is_loopback(urlsplit(text).hostname or ""):
        raise ValueError(f"{text}: others on the way could read and change what is sent: use https")
    return Url(text)


def collector_url(text: str) -> CollectorUrl:
    """http or https, on any host."""
    _server(text)
    return CollectorUrl(text)


def _server(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        name = parts.hostname or ""
        parts.port  # noqa: B018  # raises ValueError
    except ValueError:
        name = ""
    if not name or parts.scheme not in ("https", "http") or not text.isprintable():
        raise ValueError(f"{text!r} is no address of a server: write it as https://HOST/PATH")
    if parts.username is not None or parts.password is not None:
        raise ValueError("has a user in it: write it as https://HOST/PATH")
    return parts


def share(text: str) -> Share:
    """1%, 0.01: more than none, and all at most."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(%?)", text)
    value = 0.0 if found is None else float(found[1]) / (100 if found[2] else 1)
    if not 0 < value <= 1:
        raise ValueError(f"{text!r} is no share: write it as 1% or 0.01, more than 0 and 100% at most")
    return Share(value)


def principal(text: str) -> Principal:
    """`User:` and the subject of a certificate; or `*`, each other one."""
    if text != EVERY_PRINCIPAL and not text.startswith("User:"):
        raise ValueError(
            f"{text!r} is no principal: write it as User:CN=ops,O=Example, or * for each other one"
        )
    return Principal(text)


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
        NodePattern: Scalar(node_pattern, "a host name with $(node) in it"),
        ServerName: Scalar(server_name, "a host name"),
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
        Network: Scalar(network, "a network such as 10.0.0.0/8"),
        Text: Scalar(text, "a text"),
        Url: Scalar(url, "https://HOST/PATH"),
        CollectorUrl: Scalar(collector_url, "http://HOST:PORT/PATH"),
        Share: Scalar(share, "a share such as 1%"),
        Principal: Scalar(principal, "a principal", commas=True),
        Filter: Scalar(expression, "an expression"),
        Admin: Scalar(admin, "HOST:PORT or none"),
        Tls: Scalar(tls, "true or false"),
        Audit: Scalar(lambda text: Audit(output_file(folder)(text)), "a file"),
        Transparent: Scalar(transparent, "true or false"),
        Rules: Scalar(lambda text: Rules(input_file(folder)(text)), "a file"),
        Capture: Scalar(lambda text: Capture(output_folder(folder)(text)), "a folder"),
    }
