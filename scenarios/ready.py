"""The ready scenarios: for each a YAML file, and a page on what a well-behaved client does."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

FOLDER = files("klamm.scenarios") / "library"


def names() -> list[str]:
    """The names of all ready scenarios."""
    return sorted(
        entry.name.removesuffix(".yaml") for entry in FOLDER.iterdir() if entry.name.endswith(".yaml")
    )


def text(name: str) -> str:
    """The file of one."""
    return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def page(name: str) -> str:
    """The page about the reactions of a well-behaved client."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def about(name: str) -> str:
    """Its first line, which says in a sentence what it does."""
    return text(name).partition("\n")[0].removeprefix("about: ")


def find(word: str) -> tuple[str, str, str]:
    """(name, source, text) of a file, or of a ready scenario. Raises OSError or UnicodeDecodeError."""
    if word in names():
        return word, f"{word}.yaml", text(word)
    return Path(word).stem, word, Path(word).read_text(encoding="utf-8")
