"""The blocks of code in the pages, and the commands in them and in the help texts, found by themselves."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from klamm.cli import COMMANDS, main
from tests.brokers.jars import ROOT

PROGRAMS = {
    *("klamm", ".venv/bin/klamm", ".venv/bin/python", "curl", "make", "pip", "python", "python3"),
    *("pytest", "tcpdump", "tshark", "xxd", "duckdb", "iptables"),
    *("docker", "kubectl"),
}
FENCE = re.compile(r"^( *)```(\w*)")
PROMPT = "$ "
REMARK = re.compile(r" {3,}(?=\S)")  # help and pages set what a command does apart from it with spaces


class Block(NamedTuple):
    """A block of one page, with the number of its first line; `language` is that of its fence, or found."""

    page: str
    line: int
    language: str
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


class Command(NamedTuple):
    """A command as it is written, and what the page says that it prints."""

    text: str
    output: str


def pages() -> list[str]:
    """README.md and all of docs/, as names from the root of the repository."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


@cache
def blocks() -> tuple[Block, ...]:
    """Of all pages and help texts."""
    return tuple(block for page in pages() for block in _blocks(page)) + tuple(_examples())


def _blocks(page: str) -> Iterator[Block]:
    lines = (ROOT / page).read_text().splitlines()
    at = 0
    while at < len(lines):
        start, fence = at, FENCE.match(lines[at])
        if fence:
            end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith(fence[1] + "```"))
            text = "\n".join(line.removeprefix(fence[1]) for line in lines[at + 1 : end])
            yield Block(page, start + 2, fence[2] or _language(text), text)
            at = end + 1
        elif lines[at].startswith("    ") and not (at and lines[at - 1].strip()):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            text = "\n".join(line.removeprefix("    ") for line in lines[start:at]).strip("\n")
            yield Block(page, start + 1, _language(text), text)
        else:
            at += 1


def _language(text: str) -> str:
    """A block that does not say it: a shell's where it begins with a prompt or a program."""
    return "sh" if text.startswith(PROMPT) or text.split()[0] in PROGRAMS else "text"


def helps() -> dict[str, str]:
    """The help text of klamm and of each command, by the words that print it."""
    words = [[], *([command] for command in COMMANDS)]
    found = {}
    while words:
        command = words.pop(0)
        text = _printed([*command, "--help"])
        found[" ".join(["klamm", *command, "--help"])] = text
        if len(command) == 1:
            words += [[*command, inner] for inner in _inner(text)]
    return found


def _inner(text: str) -> list[str]:
    """The commands of a command: argparse lists each on a line of its own, with four spaces before it."""
    return re.findall(r"^    ([a-z]+)(?: {2,}.*)?$", text.partition("positional arguments:")[2], re.MULTILINE)


def _printed(words: list[str]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(words) == 0
    return printed.getvalue()


def _examples() -> Iterator[Block]:
    for page, text in helps().items():
        rest = text.partition("examples:\n")[2]
        lines = [line.removeprefix("  ") for line in rest.partition("\n\n")[0].splitlines()]
        if lines:
            yield Block(page, 1, "sh", "\n".join(lines))


def commands(block: Block) -> list[Command]:
    """Of a block for the shell: its lines, or, where there are prompts, those after one."""
    lines = block.text.splitlines()
    prompts = any(line.startswith(PROMPT) for line in lines)
    found: list[list[str]] = []  # the command's lines, then those of its output
    whole = True
    for line in lines:
        begins = whole and (line.startswith(PROMPT) if prompts else bool(line.strip()))
        if begins:
            found.append([line.removeprefix(PROMPT)])
        elif not whole:
            found[-1][0] += "\n" + line
        elif found:
            found[-1].append(line)
        whole = not found or _is_whole(found[-1][0])
    cut = [Command(_without_remark(text), "\n".join(output)) for text, *output in found]
    return [command for command in cut if command.text and not command.text.startswith(("#", "bootstrap."))]


def _is_whole(text: str) -> bool:
    return not text.endswith("\\") and text.count('"') % 2 == 0 and text.count("'") % 2 == 0


def _without_remark(text: str) -> str:
    return text if "\n" in text else REMARK.split(text.strip())[0]
