"""Shared by the commands that read captures: which words are captures, and how damage is reported."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING

from klamm.cli.saying import WrongWord, say
from klamm.rules.expressions import Expression, ExpressionError, parse
from klamm.rules.expressions.names import KNOWN, constant
from klamm.rules.expressions.work import OFFLINE
from klamm.settings.extras import installing

if TYPE_CHECKING:
    from klamm.captures.ended import Ended
    from klamm.captures.storage.following import Following
    from klamm.captures.storage.reading import Reading

FINE, LOST, USAGE = 0, 1, 2
SIGNS = re.compile(r"""[=<>!]=|[<>&|()"']|[ ](and|or|not|in|is|[-=+*/])[ ]|^not[ ]""")  # seldom in paths


def telling(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Turns errors into lines for people: 2 for wrong words, 1 for failures."""

    @wraps(command)
    def run(arguments: argparse.Namespace) -> int:
        try:
            return command(arguments)
        except WrongWord as problem:
            return say(str(problem), USAGE)
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.partition(".")[0] != "pyarrow":
                raise
            return say(f"klamm {arguments.asked} needs pyarrow: {installing('capture')}", LOST)
        except OSError as problem:
            if problem.filename is None:  # of what is printed
                raise
            return say(f"{problem.filename}: {problem.strerror}", LOST)

    return run


def words(found: Iterable[str]) -> tuple[list[str], str | None]:
    """Captures, and an expression: a word that exists as a path is a capture, one other word is the
    expression.
    """
    there: list[str] = []
    others: list[str] = []
    for word in found:
        (there if _exists(word) else others).append(word)
    paths = [word for word in others if not _is_meant_as_expression(word)]
    if not there and paths:
        raise WrongWord(f"{_absent(paths[0])}; the first word is a capture: a file or a folder")
    if not there:
        expression(others[0])
        raise WrongWord(f"name a capture, a file or a folder, before {others[0]!r}")
    if len(others) > 1:
        raise WrongWord(_absent(paths[0]) if paths else _several(others))
    return there, others[0] if others else None


def _several(others: list[str]) -> str:
    try:
        parse(" ".join(others))
    except ExpressionError:
        return f"two expressions: join them with and: {others[1]!r}"
    return f"quote the expression: {shlex.quote(' '.join(others))}"


def expression(text: str | None) -> Expression | None:
    """Raises WrongWord."""
    if text is None:
        return None
    try:
        found = parse(text, OFFLINE)
        found.apis()
    except ExpressionError as wrong:
        if _is_meant_as_expression(text):
            raise WrongWord(str(wrong)) from None
        raise WrongWord(f"{_absent(text)}, and no expression: {wrong}") from None
    return found


def _is_meant_as_expression(word: str) -> bool:
    """Rather than as a path."""
    return SIGNS.search(word) is not None or word in KNOWN or constant(word) is not None


def captures(paths: Iterable[str]) -> list[str]:
    """Raises WrongWord for a path that does not exist."""
    found = list(paths)
    for path in found:
        if not _exists(path):
            raise WrongWord(_absent(path))
    return found


def reading(paths: list[str], where: Expression | None = None) -> Reading:
    """Without the frames that `where` cannot choose. Raises ModuleNotFoundError without pyarrow."""
    from klamm.captures.headers import keeping
    from klamm.captures.storage.reading import read

    return read(paths, keep=keeping(where))


def report_problems(found: Reading | Following | Ended) -> int:
    """Prints a line for each part that could not be read: 1 if there is one."""
    for problem in found.problems:
        say(problem, LOST)
    return LOST if found.problems else FINE


def _exists(word: str) -> bool:
    try:
        return os.path.exists(word)
    except ValueError:
        return False


def _absent(word: str) -> str:
    return f"{word!r} is no file or folder"
