"""setuptools, which needs mypy too where klamm is compiled (KLAMM_COMPILE=1): PEP 517."""

from __future__ import annotations

import os
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  # every hook that is not below

MYPY = "mypy==2.4.*"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    required: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    return [*required, MYPY] if os.environ.get("KLAMM_COMPILE") == "1" else required
