#!/usr/bin/env bash
# Write a bill of materials of what requirements.lock installs, as CycloneDX JSON: tools/sbom.sh FILE
set -eu -o pipefail
file=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/python -m venv --without-pip "$folder"
.venv/bin/python -m pip --python "$folder" install --disable-pip-version-check --quiet --require-hashes -r requirements.lock
.venv/bin/python -m cyclonedx_py environment --pyproject pyproject.toml --output-reproducible --output-format JSON \
    --output-file "$file" "$folder/bin/python"
