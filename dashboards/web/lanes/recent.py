"""A dictionary of bounded size: what was not asked for longest makes room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """At most `most` values; `forgotten` is told of each that makes room."""

    def __init__(self, most: int, forgotten: Callable[[Key, Value], object] | None = None) -> None:
        self.most, self.forgotten = most, forgotten
        self.kept: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        value = self.kept.get(key)
        if value is not None:
            self.kept.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> Value:
        self.kept[key] = value
        self.kept.move_to_end(key)
        if len(self.kept) > self.most:
            old, gone = self.kept.popitem(last=False)
            if self.forgotten is not None:
                self.forgotten(old, gone)
        return value

    def made(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value, made if there is none."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found

    def pop(self, key: Key) -> Value | None:
        return self.kept.pop(key, None)
