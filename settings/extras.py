"""The message that says how to install an extra of klamm that a command needs."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit


def installing(extra: str) -> str:
    """The command that adds an extra to this klamm, as it was installed: from a folder, a URL or an index."""
    return f"{_pip()} install {_wanted(extra)}"


def _pip() -> str:
    """`pip`, where that is the one of this Python."""
    found = shutil.which("pip")
    beside = found is not None and Path(found).parent == Path(sys.executable).parent
    return "pip" if beside else f"{shlex.quote(sys.executable)} -m pip"


def _wanted(extra: str) -> str:
    try:
        origin = metadata.distribution("klamm").read_text("direct_url.json")  # PEP 610
    except metadata.PackageNotFoundError:
        origin = None
    if origin is None:
        return f"'klamm[{extra}]'"
    told = json.loads(origin)
    if "dir_info" not in told:
        vcs = told.get("vcs_info", {}).get("vcs")
        return f"'klamm[{extra}] @ {f'{vcs}+' if vcs else ''}{told['url']}'"
    folder = Path(unquote(urlsplit(told["url"]).path))
    if not (folder / "pyproject.toml").is_file():
        return f"'klamm[{extra}]'"
    named = "." if folder == Path.cwd() else str(folder)
    return ("-e " if told["dir_info"].get("editable") else "") + shlex.quote(f"{named}[{extra}]")
