"""Tests that a page or a table names: are they there?"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache

from tests.brokers.jars import ROOT


def missing(names: Iterable[str]) -> set[str]:
    """The names, written "tests/file.py::test_it", of tests that do not exist."""
    return {name for name in names if not _is_there(*name.split("::"))}


def _is_there(path: str, test: str) -> bool:
    return (ROOT / path).is_file() and test in _tests_in(path)


@cache
def _tests_in(path: str) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, kinds)}
