#!/usr/bin/env bash
# Make .venv where it is missing, and install klamm into it with the extras of one make target: tools/venv.sh EXTRA
set -eu -o pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "klamm needs Python 3.11 or newer; name one: make ... PYTHON=/path/to/python3.12" >&2
    exit 1
fi
if [ ! -x .venv/bin/pip ]; then
    "$python" -c 'import ensurepip, venv' 2>/dev/null || tools/packages.sh python3-venv
    "$python" -m venv --clear .venv
fi
echo "installing klamm and what make needs for '$1' into .venv: half a minute or more, once" >&2
.venv/bin/python -m pip install --disable-pip-version-check --progress-bar off --editable ".[$1]" | tools/pip_progress.sh
touch ".venv/$1.installed"
