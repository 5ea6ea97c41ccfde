"""A Dockerfile, read: its stages, their instructions, and the files that .dockerignore lets in."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple


class Instruction(NamedTuple):
    """`text` is one line: continued lines are joined."""

    name: str
    text: str


class Stage(NamedTuple):
    """`base` is an image with its tag, or the name of an earlier stage."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]


def stages(file: Path, arguments: Mapping[str, str]) -> list[Stage]:
    """The stages; `arguments` are those of --build-arg."""
    found: list[Stage] = []
    values: dict[str, str] = {}
    for instruction in _instructions(file.read_text()):
        if instruction.name == "FROM":
            base, *name = substituted(instruction.text, values).split(" AS ")
            found.append(Stage(base, "".join(name), ()))
        elif found:
            stage = found[-1]
            found[-1] = stage._replace(instructions=(*stage.instructions, instruction))
        else:
            assert instruction.name == "ARG", f"{instruction.name} before FROM"
            values |= argument(instruction.text, arguments)
    return found


def argument(text: str, given: Mapping[str, str]) -> dict[str, str]:
    """The name and value of an ARG; --build-arg may give another value."""
    name, _, default = text.partition("=")
    return {name: given.get(name, default)}


def substituted(text: str, values: Mapping[str, str]) -> str:
    """With values in place of $NAME and ${NAME}; KeyError for a name that nothing sets."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: values[found[1]], text)


def _instructions(text: str) -> Iterator[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    for line in joined.splitlines():
        name, _, rest = line.partition(" ")
        yield Instruction(name, rest.strip())


def let_in(paths: Sequence[str], ignore: Path) -> list[str]:
    """The paths that .dockerignore lets into the context: the last pattern that fits decides."""
    patterns = [line for line in ignore.read_text().splitlines() if line]
    return [path for path in paths if not _ignored(path, patterns)]


def _ignored(path: str, patterns: Sequence[str]) -> bool:
    around = [path, *map(str, PurePosixPath(path).parents)]
    fitting = [
        pattern for pattern in patterns if any(_fits(part, pattern.removeprefix("!")) for part in around)
    ]
    return bool(fitting) and not fitting[-1].startswith("!")


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatchcase(PurePosixPath(path).name, pattern.removeprefix("**/"))
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)
