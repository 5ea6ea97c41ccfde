"""Names of APIs and errors from their beginnings: `Prod`, `NOT_LEADER`."""

from __future__ import annotations

from collections.abc import Mapping

from klamm.cli.saying import WrongWord
from klamm.decoders import API, ERRORS
from klamm.settings.listing import some
from klamm.settings.nearest import suggestion

LISTED = 5


def api(word: str) -> str:
    """One API; a glob or a list stays as it is."""
    if any(mark in word for mark in "*?[,"):
        return word
    return _the_one("API", word, {name: api.name for api in API for name in (api.name, *api.aliases)})


def error(word: str) -> str:
    """One error; a code is one too."""
    if word.lstrip("-").isdigit():
        return word
    return _the_one("error", word, {name: e.name for e in ERRORS for name in (e.name, *e.aliases)})


def _the_one(what: str, word: str, names: Mapping[str, str]) -> str:
    folded = word.casefold()
    exact = {meant for name, meant in names.items() if name.casefold() == folded}
    found = exact or {meant for name, meant in names.items() if name.casefold().startswith(folded)}
    if len(found) == 1:
        return found.pop()
    if not found:
        raise WrongWord(f"there is no {what} {word!r}{suggestion(word, names)}")
    listed = sorted(found)
    raise WrongWord(f"{word!r} may be {some(listed, LISTED)}: write more of it")
