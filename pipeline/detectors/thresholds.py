"""A file of thresholds: by detector and name, what is to hold instead of the detector's own.

tiny_batches:
  batches: 1000
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, make_dataclass
from math import isfinite
from typing import Any, NewType

from klamm.pipeline.detectors.detector import Detector
from klamm.pipeline.detectors.finding import Thresholds
from klamm.settings.mistakes import ConfigError
from klamm.settings.typed_yaml import BROKEN, Scalar, read_file

Value = NewType("Value", float)


def load(file: str, detectors: Sequence[Detector]) -> Thresholds:
    """The thresholds that the file names. Raises ConfigError with all of its mistakes."""
    document = read_file(file, _form(detectors), {Value: Scalar(_value, "a number from 0")})
    if document.mistakes or document.value is BROKEN:
        raise ConfigError(document.mistakes)
    return {
        str(path[0]): {
            name: value
            for name, value in vars(getattr(document.value, str(path[0]))).items()
            if value is not None
        }
        for path in document.places
        if len(path) == 1
    }


def _form(detectors: Sequence[Detector]) -> type:
    """The keys of such a file, as a dataclass: a key for each detector, in it one for each threshold."""
    keys: list[tuple[str, Any, Any]] = []
    for one in detectors:
        names = [(name, Value | None, field(default=None)) for name in one.thresholds]
        form = make_dataclass(one.name, names)
        keys.append((one.name, form, field(default_factory=form)))
    return make_dataclass("Thresholds", keys)


def _value(text: str) -> Value:
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not isfinite(found) or found < 0:
        raise ValueError(f"{text} is not a number from 0")
    return Value(found)
