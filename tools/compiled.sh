#!/usr/bin/env bash
# Build a wheel with a compiled session, and unpack it: tools/compiled.sh FOLDER (for PYTHONPATH)
set -eu -o pipefail
cd "$(dirname "$0")/.."
echo "compiling the session into $1: a minute or more" >&2
rm -rf "$1" && mkdir "$1"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
KLAMM_COMPILE=1 .venv/bin/python -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir "$wheels" .
.venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --target "$1" "$wheels"/*.whl
PYTHONPATH="$1" .venv/bin/klamm --version | grep compiled >&2
touch "$1"
