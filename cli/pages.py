"""`klamm help PAGE`: the pages of docs/, which are installed with klamm."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from klamm.settings.nearest import suggestion

FOLDER = Path(__file__).resolve().parent.parent / "docs"


def show(word: str, commands: Iterable[str]) -> int:
    """Print a page: docs/rules.md, rules.md or rules; for `docs`, the names of all.
    2 if there is none: then the nearest page or command is named.
    """
    if word.rstrip("/") == "docs":
        print("\n".join(names()))
        return 0
    name = f"docs/{word.removeprefix('docs/').removesuffix('.md')}.md"
    if name not in names():
        near = suggestion(word, [*commands, *(Path(page).stem for page in names())])
        print(f"klamm help: no command and no page {word!r}{near}", file=sys.stderr)
        print("see klamm help, and klamm help docs", file=sys.stderr)
        return 2
    print((FOLDER.parent / name).read_text(encoding="utf-8"), end="")
    return 0


def names() -> list[str]:
    """docs/admin-api.md and so on."""
    return [f"docs/{path.name}" for path in sorted(FOLDER.glob("*.md"))]
