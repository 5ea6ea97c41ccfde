"""The command lines and klamm.yaml that the files of deploy/ give to klamm, read as klamm reads them."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path

from klamm.cli import COMMANDS, Parser
from klamm.cli.running import run
from klamm.proxy.config import Config
from tests.brokers.jars import ROOT
from tests.deploy.dockerfile import stages

DEPLOY = ROOT / "deploy"
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
IMAGE = f"klamm:{VERSION}"


def said(name: str) -> str:
    """An instruction of the last stage of the Dockerfile."""
    instructions = stages(ROOT / "Dockerfile", {})[-1].instructions
    return next(instruction.text for instruction in instructions if instruction.name == name)


def user() -> int:
    """The id of the image's user."""
    return int(said("USER").partition(":")[0])


def state_folder() -> str:
    """Where the image's klamm keeps its state."""
    settings = dict(word.split("=", 1) for word in said("ENV").split())
    return settings["STATE_DIRECTORY"]


def configured(arguments: Sequence[str], files: Sequence[tuple[str, str]], folder: Path) -> Config:
    """The settings of `klamm run` with these arguments. `files` are paths in the container, and their
    contents: they are put below `folder`. ConfigError where klamm would not start.
    """
    moved = [*arguments]
    for path, text in files:
        here = folder / path.lstrip("/")
        here.parent.mkdir(parents=True, exist_ok=True)
        for other, _ in files:
            text = text.replace(other, str(folder / other.lstrip("/")))
        here.write_text(text)
        moved = [word.replace(path, str(here)) for word in moved]
    parser = Parser(prog="klamm", add_help=False)
    run.add_parser(parser.add_subparsers())
    return run.configure(parser.parse_args(["run", *moved]))


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Any command of klamm; SystemExit where it has a mistake."""
    from importlib import import_module

    assert words[0] == "klamm"
    parser = Parser(prog="klamm", add_help=False)
    import_module(f"klamm.cli.{COMMANDS[words[1]].module}").add_parser(parser.add_subparsers())
    return parser.parse_args(words[1:])
