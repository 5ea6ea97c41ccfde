"""Starting a target: libFuzzer's arguments, and seeds where the corpus is empty."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris


def run(one_input: Callable[[bytes], None], seeds: Iterable[tuple[str, bytes]]) -> None:
    """Does not return. The first folder among the arguments is the corpus; it is made, and grows."""
    folders = [Path(argument) for argument in sys.argv[1:] if not argument.startswith("-")]
    for corpus in folders[:1]:
        corpus.mkdir(parents=True, exist_ok=True)
        if not any(corpus.iterdir()):
            for name, data in seeds:
                (corpus / name).write_bytes(data)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
