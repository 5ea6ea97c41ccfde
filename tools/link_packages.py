"""Make .venv/tree/klamm, where links show the folders as the packages they are installed as.

Type checkers and import-linter look for packages on a path, and do not follow an editable install.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / ".venv" / "tree"

folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
for package, folder in folders.items():
    link = TREE.joinpath(*package.split("."))
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(ROOT / folder, target_is_directory=True)
