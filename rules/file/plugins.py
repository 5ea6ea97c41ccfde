"""Actions of one's own: a Python file whose public classes with `name` and `act` are actions, like the
built-in ones. Fields of a frozen dataclass are the action's parameters.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from klamm.rules.file.written import SIDES_BY_DEFAULT, reserved
from klamm.rules.rule import Action
from klamm.settings.mistakes import Mistake, Place

NAME = re.compile(r"[a-z][a-z0-9_]*")


class _Source(InspectLoader):
    """Reads the file each time: no cached bytecode."""

    def __init__(self, file: str) -> None:
        self.file = file

    def get_source(self, fullname: str) -> str:
        return Path(self.file).read_text()

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_source(fullname), self.file)


def load(file: str, known: Mapping[str, type[Action]]) -> tuple[dict[str, type[Action]], list[Mistake]]:
    """The actions of a file, and its mistakes. Runs the file."""
    try:
        module = _run(file)
    except OSError as problem:
        return {}, [Mistake(Place(file), (), f"cannot be read: {problem.strerror}")]
    except SyntaxError as problem:
        place = Place(file, problem.lineno or 1, problem.offset or 1)
        return {}, [Mistake(place, (), f"not Python: {problem.msg}")]
    except Exception as problem:  # a plugin may raise anything
        return {}, [Mistake(_raised_at(file, problem), (), f"raised {type(problem).__name__}: {problem}")]
    found: dict[str, type[Action]] = {}
    mistakes: list[Mistake] = []
    for word, kind in vars(module).items():
        if isinstance(kind, type) and kind.__module__ == module.__name__ and not word.startswith("_"):
            if not (hasattr(kind, "name") and hasattr(kind, "act")):
                continue
            reason = _wrong(kind, {**known, **found})
            if reason:
                mistakes.append(Mistake(Place(file, _line(file, word), 1), (), f"class {word}: {reason}"))
            else:
                action = _action(kind)
                found[action.name] = action
    if not found and not mistakes:
        mistakes.append(Mistake(Place(file), (), "has no action: a class with `name` and `act`"))
    return found, mistakes


def _run(file: str) -> ModuleType:
    name = "klamm_plugin_" + re.sub(r"\W", "_", str(Path(file).absolute()))
    spec = spec_from_loader(name, _Source(file), origin=file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    module.__file__ = file
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look their types up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


def _wrong(kind: type, known: Mapping[str, type[Action]]) -> str:
    name = kind.name  # type: ignore[attr-defined]
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"its name is {name!r}: it takes small letters, digits and '_'"
    if name in known:
        return f"there is an action named {name} already"
    if name in reserved():
        return f"{name} is another key of a rule: choose another"
    if not callable(kind.act):  # type: ignore[attr-defined]
        return "act must be a method"
    if is_dataclass(kind):
        if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            return "write @dataclass(frozen=True) above it"
        try:
            get_type_hints(kind)
        except NameError as problem:
            return str(problem)
    return ""


def _action(kind: Any) -> Any:
    if not is_dataclass(kind):
        kind = dataclass(frozen=True)(kind)
    if not hasattr(kind, "sides"):
        kind.sides = SIDES_BY_DEFAULT
    return kind


def _raised_at(file: str, problem: Exception) -> Place:
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == file]
    return Place(file, lines[-1] or 1, 1) if lines else Place(file)


def _line(file: str, word: str) -> int:
    text = Path(file).read_text()
    found = re.search(rf"^class {word}\b", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1
