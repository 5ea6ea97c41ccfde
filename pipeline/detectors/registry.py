"""All detectors: each module of these folders that has a DETECTOR. They need Spark to be imported."""

from importlib import import_module
from pkgutil import iter_modules

from klamm.pipeline.detectors import connections, consumers, groups, producers
from klamm.pipeline.detectors.detector import Detector

FOLDERS = (connections, consumers, groups, producers)
_MODULES = (f"{folder.__name__}.{one.name}" for folder in FOLDERS for one in iter_modules(folder.__path__))

DETECTORS: tuple[Detector, ...] = tuple(
    sorted((import_module(name).DETECTOR for name in _MODULES), key=lambda detector: str(detector.name))
)
