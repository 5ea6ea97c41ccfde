"""Compares two layouts of one message: Kafka's and ours."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from klamm.decoders.interpret import Layout
from klamm.decoders.schema import Field, members, present


class Difference(NamedTuple):
    """`bytes`: one of the two cannot read all that the other writes, or reads other values."""

    text: str
    bytes: bool


def differences(kafka: Layout, ours: Layout) -> list[Difference]:
    """Every difference, outermost fields first. Nothing: the two write and read the same bytes."""
    found = []
    if kafka.flexible != ours.flexible:
        found.append(Difference(f"flexible in {'Kafka' if kafka.flexible else 'the table'} only", True))
    return [*found, *_structs(kafka.fields, ours.fields, ours.version, "")]


def _structs(
    kafka: tuple[Field, ...], ours: tuple[Field, ...], version: int, path: str
) -> Iterator[Difference]:
    there, tagged_there = present(kafka, version)
    here, tagged_here = present(ours, version)
    names_there, names_here = [f.name for f in there], [f.name for f in here]
    matcher = SequenceMatcher(None, names_there, names_here, autojunk=False)
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal" or (what == "replace" and [*map(_shape, there[a:b])] == [*map(_shape, here[c:d])]):
            for theirs, our in zip(there[a:b], here[c:d], strict=True):
                yield from _fields(theirs, our, version, path)
            continue
        for index in range(a, b):
            name, place = names_there[index], f"after {names_there[index - 1]}" if index else "first"
            missing = f"missing: {describe(there[index], version)}, {place}"
            text = f"stands {place} in Kafka" if name in names_here else missing
            yield Difference(f"{path}{name} {text}", True)
        for index in range(c, d):
            if names_here[index] not in names_there:
                yield Difference(f"{path}{names_here[index]} is not in Kafka", True)
    yield from _tagged(tagged_there, tagged_here, version, path)


def _tagged(there: list[Field], here: list[Field], version: int, path: str) -> Iterator[Difference]:
    by_tag = {f.tag: f for f in here}
    for theirs in there:
        our = by_tag.pop(theirs.tag, None)
        if our is None:
            yield Difference(f"{path}{theirs.name} missing: {describe(theirs, version)}", True)
        else:
            yield from _fields(theirs, our, version, path)
    for our in by_tag.values():  # to Kafka it is an unknown tag, which it skips
        yield Difference(f"{path}{our.name} (tag {our.tag}) is not in Kafka", False)


def _fields(kafka: Field, ours: Field, version: int, path: str) -> Iterator[Difference]:
    name = path + ours.name
    if kafka.name != ours.name:
        yield Difference(f"{name} is called {kafka.name}", False)
    if _shape(kafka) != _shape(ours):
        text = f"{name} is {describe(kafka, version)}; in the table {describe(ours, version)}"
        yield Difference(text, {kafka.kind, ours.kind} != {"bytes", "records"})
        return
    if (version in kafka.null) != (version in ours.null):
        where = "Kafka" if version in kafka.null else "the table"
        yield Difference(f"{name} may be null in {where} only", True)
    if kafka.default != ours.default:
        text = f"{name} has the default {kafka.default!r}; in the table {ours.default!r}"
        yield Difference(text, ours.tag is not None)  # a tagged field is not written where it has its default
    if members(ours):
        yield from _structs(members(kafka), members(ours), version, f"{name}{_SUFFIX[ours.kind]}.")


_SUFFIX = {"array": "[]", "struct": ""}


def _shape(f: Field) -> tuple[str, str]:
    return f.kind, f.of if isinstance(f.of, str) else "struct"


def describe(f: Field, version: int) -> str:
    """Type, null, tag and default of a field, in a few words."""
    words = [f.kind if f.kind != "array" else f"array of {'structs' if members(f) else f.of}"]
    words += ["null"] if version in f.null else []
    words += [f"tag {f.tag}"] if f.tag is not None else []
    words += [f"default {f.default!r}"] if f.default not in (0, "", b"", (), None, bytes(16)) else []
    if f.default is None and version in f.null and f.kind != "records":
        words.append("default null")
    if members(f):
        inner, tagged = present(members(f), version)
        words.append("{" + ", ".join(f"{m.name}: {describe(m, version)}" for m in [*inner, *tagged]) + "}")
    return " ".join(words)
