"""`klamm config check`: the settings of `klamm run`, read as it reads them, and not used."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from klamm.cli.running import certificates
from klamm.cli.running.config_file import checked, place_of
from klamm.cli.running.named_files import rule_file
from klamm.cli.running.run import add_settings, given
from klamm.cli.running.would_run import would_run
from klamm.settings.mistakes import ConfigError, Mistake
from klamm.settings.printable import printable

DESCRIPTION = """\
Read klamm.yaml as `klamm run --config FILE` does, with the rules, certificates, keys and secrets that it
names, and report all mistakes. Nothing is listened on, and nobody is connected to.
"""

EXAMPLES = """\
examples:
  klamm config check
  klamm config check klamm.yaml
  klamm config check klamm.yaml --rules rules.yaml --metrics 0.0.0.0:9090

The options are those of `klamm run`, and override the file. The exit code is 0 if klamm can start with these
settings, 2 if there are mistakes. A certificate that has expired is a warning. docs/configuration.md
describes the file.
"""

FILE = "klamm.yaml"
USAGE = 2


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm config check [FILE [BOOTSTRAP[,...]]] [OPTION...]"
    parser = subparsers.add_parser("config", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    text = "report all mistakes in klamm.yaml, and what it would run"
    check = commands.add_parser("check", help=text, prog="klamm config check", usage=usage)
    check.add_argument("config", nargs="?", default=FILE, metavar="FILE", help=f"the file [{FILE}]")
    add_settings(check)


def run(arguments: argparse.Namespace) -> int:
    """0 fine, 2 mistakes."""
    source = arguments.config
    try:
        config, places, mistakes = given(arguments)
        checked(config, places, mistakes)
        rules = rule_file(config.rules)
        if rules is not None and rules.mistakes:
            raise ConfigError(rules.mistakes)
    except ConfigError as error:
        for mistake in error.mistakes:
            print(mistake)
        count = len(error.mistakes)
        print(f"{printable(source)}: {count} mistake{'s' * (count > 1)}")
        return USAGE
    doubts = [
        Mistake(place_of(path, places), path, reason)
        for path, reason in certificates.doubts(config, datetime.now(UTC))
    ]
    doubts += [] if rules is None else rules.warnings
    for doubt in doubts:
        print(doubt._replace(reason=f"warning: {doubt.reason}"))
    for line in would_run(config, rules):
        print(printable(line))
    warned = f", {len(doubts)} warning{'s' * (len(doubts) > 1)}" if doubts else ""
    print(f"{printable(source)}: no mistakes{warned}, ready to run")
    return 0
