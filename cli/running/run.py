"""`klamm run`: the command line and klamm.yaml together become one Config."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

from klamm.cli.running.banner import banner
from klamm.cli.running.config_file import checked, parse
from klamm.cli.running.scalars import scalars
from klamm.cli.running.web_page import fault, web_page
from klamm.proxy.config import (
    Admin,
    AdminTls,
    Audit,
    Capture,
    Cluster,
    Config,
    ListenTls,
    Rules,
    State,
    Tls,
    Transparent,
)
from klamm.proxy.config_types import (
    Address,
    ApiName,
    Count,
    Filter,
    Folder,
    Host,
    InputFile,
    Listen,
    OutputFile,
)
from klamm.settings.mistakes import ConfigError, Mistake, Path, Place
from klamm.settings.printable import printable
from klamm.settings.typed_yaml import BROKEN, NOTHING, Document, choose

if TYPE_CHECKING:
    from klamm.proxy.greeting import Greeting

T = TypeVar("T")

DESCRIPTION = """\
Stand between Kafka clients and a cluster: every broker gets a port of klamm's own, every broker address on
the way to a client is rewritten to it, and nothing else changes.
"""

EXAMPLES = """\
examples:
  klamm run kafka-1:9092
  klamm run kafka-1:9093 --upstream-tls --upstream-ca ca.pem      TLS to the brokers; SASL passes through
  klamm run kafka-1:9092 --listen 0.0.0.0:19092-19120 --advertise proxy.example.com
  klamm run kafka-1:9092 --log all                                one line per request and response
  klamm run kafka-1:9092 --rules rules.yaml                       injected errors, delays, cuts
  klamm run --config klamm.yaml                                   more than one cluster; docs/configuration.md
"""


CUT_OFF = 3  # the exit code where the drain was too short

OPTIONS = [  # option, its value (empty: none is taken), help with the default in brackets
    ("--listen", "HOST:FIRST[-LAST]", "bootstrap port, then brokers'; 100 without LAST [127.0.0.1:19092]"),
    ("--advertise", "HOST", "the host that clients get [the one they connected to]"),
    ("--map", "ADVERTISED=REACHABLE", "reach a broker that advertises HOST:PORT elsewhere; repeatable"),
    ("--upstream-tls", "", "TLS to the brokers"),
    ("--upstream-ca", "FILE", "certificates to trust [the system's]; implies --upstream-tls"),
    ("--listen-tls-cert", "FILE", "TLS from the clients, with this certificate of klamm's [plain text]"),
    ("--listen-tls-key", "FILE", "its private key [in the same file]"),
    ("--listen-tls-ca", "FILE", "clients need a certificate of these authorities [none is asked for]"),
    ("--transparent", "", "clients keep the brokers' addresses, and a redirect leads them to klamm"),
    ("--admin", "HOST:PORT", "the admin API, metrics and health over HTTP, or none [127.0.0.1:19091]"),
    ("--admin-tls-cert", "FILE", "TLS from callers of the admin API, with this certificate [plain HTTP]"),
    ("--admin-tls-key", "FILE", "its private key [in the same file]"),
    (
        "--admin-token-file",
        "FILE",
        "callers of the admin API show it; needed beyond this machine [none]",
    ),
    ("--admin-read-only-token-file", "FILE", "the token of callers who may change nothing [none]"),
    ("--read-only", "", "refuse all changes through the admin API"),
    ("--metrics", "HOST:PORT", "metrics and health alone, as for a pod's probes; needs no token [none]"),
    ("--log", "API,...", "a line per request and response of these APIs, or of all [none]"),
    ("--log-format", "FORMAT", "json, console, or auto: console on a terminal [auto]"),
    ("--audit", "FILE", "append who did what to this file: docs/audit.md [nothing is kept]"),
    ("--metering", "LEVEL", "header, or full: errors and topics too [full]"),
    ("--rules", "FILE", "rules for frames: docs/rules.md; read again when it changes [none]"),
    ("--seed", "N", "decides the rules' chances [the file's, or one that is made up and printed]"),
    ("--capture", "DIR", "capture the traffic: docs/captures.md [nothing is kept]"),
    ("--capture-filter", "EXPR", "only exchanges for which this holds [all]"),
    ("--capture-records", "HOW", "blank, keep, or hash: the part of records that is kept [blank]"),
    (
        "--state",
        "DIR",
        "remember the nodes' ports there over a restart, or none [auto: ~/.local/state/klamm]",
    ),
    ("--handover", "FILE", "a UNIX socket: the next klamm takes the place of this one there [none]"),
    ("--workers", "N", "processes that serve connections, so that klamm uses as many cores [1]"),
    ("--web", "", "a page for a browser, the inspector: docs/web.md [none]"),
    ("--web-listen", "HOST:PORT", "its address, as of `klamm web`; implies --web [127.0.0.1:19090]"),
]


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm run BOOTSTRAP[,...] [OPTION...]"
    parser = subparsers.add_parser("run", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    add_settings(parser)
    parser.add_argument("--config", metavar="FILE", help="klamm.yaml; options override it")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """BOOTSTRAP, and the options that override a file."""
    parser.add_argument("bootstrap", nargs="?", metavar="BOOTSTRAP", help="HOST:PORT of one broker or more")
    for option, value, text in OPTIONS:
        if not value:
            parser.add_argument(option, action="store_true", help=text)
        elif option == "--map":
            parser.add_argument(option, metavar=value, action="append", default=[], help=text)
        else:
            parser.add_argument(option, metavar=value, help=text)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal. 1 if it cannot, 2 if the configuration is wrong, 3 if requests were cut off."""
    try:
        config = configure(arguments)
    except ConfigError as error:
        return _wrong(error)
    from klamm.proxy.control.config_file import Source
    from klamm.proxy.serve import CannotServe, serve  # brings in uvloop, which a mistake does not need

    file = arguments.config
    source = None if file is None else Source(file, lambda: configure(arguments))
    try:
        with web_page(config.admin if _has_page(arguments) else None, arguments.web_listen):
            cut = serve(config, _greet, source)
    except ConfigError as error:
        return _wrong(error)
    except CannotServe as error:
        print(f"klamm run: {printable(str(error))}", file=sys.stderr)
        return 1
    return CUT_OFF if cut else 0


def _greet(greeting: Greeting) -> None:
    """In one piece: where the log goes to the same file, no line of it comes in between."""
    sys.stdout.write(banner(greeting) + "\n")
    sys.stdout.flush()


def _wrong(error: ConfigError) -> int:
    for mistake in error.mistakes:
        print(mistake, file=sys.stderr)
    count = len(error.mistakes)
    print(f"klamm run: {count} mistake{'s' * (count > 1)}, nothing was started", file=sys.stderr)
    return 2


def configure(arguments: argparse.Namespace) -> Config:
    """The file, overridden by the options. Raises ConfigError with the mistakes of both."""
    return checked(*given(arguments))


def given(arguments: argparse.Namespace) -> tuple[Config, Mapping[Path, Place], list[Mistake]]:
    """The same before it is checked, the places of its paths, and the mistakes so far."""
    document = parse(arguments.config) if arguments.config is not None else Document("", Config())
    overrides = _Overrides(arguments)
    config = overrides.over(document.value) if isinstance(document.value, Config) else document.value
    mistakes = document.mistakes + overrides.mistakes
    if _has_page(arguments) and isinstance(config, Config) and (reason := fault(config)) is not None:
        mistakes.append(Mistake(Place("--web"), (), reason))
    return config, {**document.places, **overrides.places}, mistakes


def _has_page(arguments: argparse.Namespace) -> bool:
    return arguments.web or arguments.web_listen is not None


class _Overrides:
    """The values of the options; `places` has the paths in Config that they decide."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.places: dict[Path, Place] = {}
        self.mistakes: list[Mistake] = []
        self.parsers = scalars(FilePath())

    def over(self, config: Config) -> Config:
        """A configuration in which every option that was given decides."""
        log = {"apis": ("--log", [ApiName]), "format": ("--log-format", ("auto", "json", "console"))}
        return replace(
            config,
            clusters=self.clusters(config.clusters),
            admin=self.admin(config.admin),
            log=self.section(config.log, "log", log),
            audit=self.value("--audit", ("audit", "file"), Audit, config.audit),
            metrics=self.section(
                config.metrics,
                "metrics",
                {"level": ("--metering", ("header", "full")), "listen": ("--metrics", Address | None)},
            ),
            rules=self.rules(config.rules),
            capture=self.capture(config.capture),
            handover=self.value("--handover", ("handover",), OutputFile, config.handover),
            workers=self.value("--workers", ("workers",), Count, config.workers),
            state=self.value("--state", ("state", "folder"), State, config.state),
        )

    def admin(self, written: Any) -> Any:
        """The address of the admin API, and the callers that it answers."""
        listen = self.value("--admin", ("admin",), Admin)
        tls = self.admin_tls(written.tls if isinstance(written, Admin) else None)
        tokens = {
            key: self.value(f"--admin-{key.replace('_', '-')}", ("admin", key), InputFile)
            for key in ("token_file", "read_only_token_file")
        }
        if BROKEN in (written, listen, tls, *tokens.values()):
            return BROKEN
        given = {key: value for key, value in tokens.items() if value is not None}
        given |= {} if listen is None else {"listen": listen.listen}
        given |= {} if tls is None else {"tls": tls}
        given |= {"read_only": True} if self.arguments.read_only else {}
        return replace(written, **given)

    def admin_tls(self, written: AdminTls | None) -> AdminTls | None:
        """The file's, with the files of the options instead."""
        return self.own_certificate("--admin-tls", ("admin", "tls"), ("cert", "key"), written, AdminTls)

    def rules(self, written: Rules | None) -> Rules | None:
        """The file's, with another path or seed."""
        file, seed = (
            self.value("--rules", ("rules", "file"), InputFile),
            self.value("--seed", ("rules", "seed"), Count),
        )
        if not isinstance(written, Rules | None):  # BROKEN
            return written
        if file is not None:
            written = Rules(file) if written is None else replace(written, file=file)
        if seed is None:
            return written
        if written is None:
            self.mistakes.append(Mistake(Place("--seed"), (), "there are no rules: add --rules FILE"))
            return None
        return replace(written, seed=seed)

    def capture(self, written: Capture | None) -> Capture | None:
        """The file's, with another folder, filter, or way to keep records."""
        folder = self.value("--capture", ("capture", "folder"), Folder)
        given = {
            "filter": self.value("--capture-filter", ("capture", "filter"), Filter),
            "records": self.value("--capture-records", ("capture", "records"), ("blank", "keep", "hash")),
        }
        given = {key: value for key, value in given.items() if value is not None}
        if not isinstance(written, Capture | None) or BROKEN in (folder, *given.values()):
            return written
        if folder is not None:
            written = Capture(folder) if written is None else replace(written, folder=folder)
        if given and written is None:
            reason = "nothing is captured: add --capture DIR"
            self.mistakes.append(Mistake(Place(f"--capture-{next(iter(given))}"), (), reason))
            return None
        return replace(written, **given) if written is not None else None

    def clusters(self, written: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
        """The options of a cluster are those of the only one."""
        only = written[0] if isinstance(written, tuple) and len(written) == 1 else None
        path: Path = ("clusters", 0)
        values = {
            "bootstrap": self.value("BOOTSTRAP", (*path, "bootstrap"), [Address]),
            "listen": self.value("--listen", (*path, "listen"), Listen),
            "advertise": self.value("--advertise", (*path, "advertise"), Host),
            "map": self.map((*path, "map"), only.map if isinstance(only, Cluster) else {}),
            "tls": self.tls((*path, "tls"), only.tls if isinstance(only, Cluster) else None),
            "listen_tls": self.listen_tls(
                (*path, "listen_tls"), only.listen_tls if isinstance(only, Cluster) else None
            ),
            "transparent": self.transparent(
                (*path, "transparent"), only.transparent if isinstance(only, Cluster) else None
            ),
        }
        given = {key: value for key, value in values.items() if value is not None}
        if written == ():
            return (Cluster(**given),) if "bootstrap" in given else ()
        if isinstance(only, Cluster):
            return (replace(only, **given),)
        if isinstance(written, tuple) and len(written) > 1:
            for key in given:
                place = self.places.pop((*path, key))
                reason = f"the file has {len(written)} clusters: set {key} there, in one of them"
                self.mistakes.append(Mistake(place, (), reason))
        return written

    def value(self, option: str, path: Path, kind: Any, default: Any = None) -> Any:
        """The value of one option, BROKEN if it cannot be read, `default` if it was not given.

        `kind` is a type that has a parser, `Address | None`, a list of one such type, or a tuple of words to
        choose from.
        """
        text = getattr(self.arguments, option.strip("-").replace("-", "_").lower())
        if text is None:
            return default
        self.places[path] = Place(option)
        if isinstance(kind, list):
            return tuple(self.scalar(option, part.strip(), kind[0]) for part in text.split(","))
        return self.scalar(option, text, kind)

    def scalar(self, option: str, text: str, kind: Any) -> Any:
        if kind == Address | None:
            if text in NOTHING:
                return None
            kind = Address
        try:
            return choose(text, kind) if isinstance(kind, tuple) else self.parsers[kind].parse(text)
        except ValueError as problem:
            self.mistakes.append(Mistake(Place(option), (), str(problem)))
            return BROKEN

    def section(self, written: Any, name: str, options: Mapping[str, tuple[str, Any]]) -> Any:
        if written is BROKEN:
            return BROKEN
        values = {
            key: self.value(option, (name, key), kind, getattr(written, key))
            for key, (option, kind) in options.items()
        }
        return replace(written, **values)

    def map(self, path: Path, written: Mapping[Address, Address]) -> Mapping[Address, Address] | None:
        """The file's map with every --map added."""
        if not self.arguments.map:
            return None
        self.places[path] = Place("--map")
        found = dict(written) if isinstance(written, Mapping) else {}
        for text in self.arguments.map:
            advertised, mark, reachable = text.partition("=")
            if not mark:
                reason = f"{text!r} has no '=': write it as kafka-1:9092=10.0.0.1:9092"
                self.mistakes.append(Mistake(Place("--map"), (), reason))
                continue
            key = self.scalar("--map", advertised, Address)
            found[key] = self.scalar("--map", reachable, Address)
        return found

    def tls(self, path: Path, written: Tls | None) -> Tls | None:
        """The file's TLS, or the system's certificates, with --upstream-ca instead."""
        ca = self.value("--upstream-ca", (*path, "ca"), InputFile)
        if ca is None and not self.arguments.upstream_tls:
            return None
        self.places[path] = Place("--upstream-tls")
        base = written if isinstance(written, Tls) else Tls()
        return base if ca is None else replace(base, ca=ca)

    def transparent(self, path: Path, written: Transparent | None) -> Transparent | None:
        """The file's, or any destination."""
        if not self.arguments.transparent:
            return None
        self.places[path] = Place("--transparent")
        return written if isinstance(written, Transparent) else Transparent()

    def listen_tls(self, path: Path, written: ListenTls | None) -> ListenTls | None:
        """The file's, with the files of the options instead."""
        return self.own_certificate("--listen-tls", path, ("cert", "key", "ca"), written, ListenTls)

    def own_certificate(
        self, option: str, path: Path, keys: Sequence[str], written: Any, kind: Callable[..., T]
    ) -> T | None:
        """TLS of a listener, with the files of the options `--OPTION-KEY`. None if none is given."""
        values = {key: self.value(f"{option}-{key}", (*path, key), InputFile) for key in keys}
        given = {key: value for key, value in values.items() if value is not None}
        if not given:
            return None
        if isinstance(written, ListenTls | AdminTls):
            return replace(written, **given)  # type: ignore[return-value]
        if "cert" not in given:
            reason = f"needs klamm's certificate: add {option}-cert FILE"
            self.mistakes.append(Mistake(Place(f"{option}-{next(iter(given))}"), (), reason))
            return None
        return kind(**given)
