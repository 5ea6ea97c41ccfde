"""The valid word that a wrong one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

LISTED = 12  # words; more than these are not worth reading in an error
COMPARED = 1000  # words: among more than these, 20 ms of comparing, only a word of another case is found


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The closest of `words`, or of their beginnings before a "_", in any case; None where none is close."""
    by_fold = {known.casefold(): known for known in words}
    meant = word.casefold()
    if len(by_fold) > COMPARED:
        return by_fold.get(meant)
    words_begun = reversed(by_fold.items())  # of two words that begin alike, the first is meant
    by_fold = {begun: known for fold, known in words_begun for begun in _beginnings(fold)} | by_fold
    found = get_close_matches(meant, by_fold)
    swapped = [one for one in found if sorted(one) == sorted(meant)]  # acsk is acks rather than rack
    return by_fold[(swapped or found)[0]] if found else None


def _beginnings(word: str) -> Iterator[str]:
    """not_leader of not_leader_or_follower: of two parts or more, for one alone says too little."""
    parts = word.split("_")
    for count in range(2, len(parts)):
        yield "_".join(parts[:count])


def suggestion(word: str, words: Iterable[str], listing: str = "") -> str:
    """The hint after an unknown word: the nearest word, else the short list, else the command that lists
    them, if there is one.
    """
    known = list(words)
    near = nearest(word, known)
    if near is not None:
        return f"; did you mean {near}?"
    if 0 < len(known) <= LISTED:
        return f"; known are {', '.join(known)}"
    return f"; `{listing}` lists them" if listing else ""
