#!/usr/bin/env bash
# Write the lock files, with hashes: tools/lock.sh [--upgrade]
# Without --upgrade, versions that pyproject.toml still allows stay as they are.
set -eu -o pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
options=(--quiet --universal --python-version 3.11 --generate-hashes --no-annotate
    --custom-compile-command "make lock")

"$python" -m uv pip compile "${options[@]}" "$@" --extra records --extra oauthbearer pyproject.toml --output-file requirements.lock
"$python" - <<'END' | "$python" -m uv pip compile "${options[@]}" "$@" - --output-file requirements-build.lock
import sys
sys.path.insert(0, "tools")
import tomllib
from pathlib import Path
import build_backend
print(*tomllib.loads(Path("pyproject.toml").read_text())["build-system"]["requires"], build_backend.MYPY, sep="\n")
END
