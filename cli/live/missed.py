"""Finds selectors that fit none of the names, such as those that came while a rule did nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from klamm.client.types import Exchange
from klamm.rules.file.connecting import is_address
from klamm.rules.glob import Glob
from klamm.settings.listing import named, some
from klamm.settings.nearest import nearest

NEWEST = 1000  # exchanges, as many as klamm keeps


def groups_of(exchanges: Iterable[Exchange]) -> set[str]:
    """The consumer groups that they name."""
    return {group for one in exchanges if one.group for group in one.group.split(",")}


def missed(selectors: Mapping[str, str], came: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """One part of a sentence for each selector that fits none of the names that came; `came` has them by the
    key of their selector.
    """
    for key, names in came.items():
        patterns = named(selectors.get(key, ""))
        there = sorted(set(names) - {""})
        by_address = key == "client" and any(map(is_address, patterns))
        if not patterns or by_address or any(map(Glob(*patterns), there)):
            continue
        near = next(filter(None, (nearest(each, there) for each in patterns if each[0] != "!")), None)
        guess = f"; did you mean {near}?" if near else ""
        yield f"no {key} {' or '.join(patterns)}, but {some(there)}{guess}" if there else f"no {key} at all"
