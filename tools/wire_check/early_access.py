"""The layouts that changed under one version: the table in docs/early-access.md."""

import re

from klamm.decoders.schema import Versions, version_range
from tools.wire_check.jar import ROOT, release

EARLY_ACCESS = "docs/early-access.md"
_ROW = re.compile(r"\| (\w+) \| (request|response) \| ([\d-]+) \| ([\d.]+)(?:-([\d.]+))? \|")


def known_changes(kafka: str) -> set[tuple[str, str, Versions]]:
    """API, side and version of the layouts that a release has otherwise than the tables."""
    rows = _ROW.findall((ROOT / EARLY_ACCESS).read_text())
    series = release(kafka)[:2]
    return {
        (api, side, version_range(versions))
        for api, side, versions, first, last in rows
        if release(first) <= series <= release(last or first)
    }
