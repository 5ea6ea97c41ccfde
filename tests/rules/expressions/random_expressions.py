"""Conditions over any layout of the wire tables, as text; all of them fit it."""

from random import Random

from klamm.decoders.interpret import Layout
from klamm.decoders.schema import ERROR, GROUP, PARTITION, TOPIC, TOPIC_ID, Field, members
from klamm.rules.expressions.kinds import OF_FIELDS

SEVERAL = {"error": {ERROR}, "topic": {TOPIC, TOPIC_ID}, "partition": {PARTITION}, "group": {GROUP}}
TEXTS = ["''", "'k'", "'kk'", "'ä'", "'x'"]
ORDER = ["==", "!=", "<", "<=", ">", ">="]


def condition(of: Layout, random: Random, depth: int = 3) -> str:
    return _any_condition("body.", of.fields, of, random, depth, 0)


def _any_condition(
    at: str, fields: tuple[Field, ...], of: Layout, random: Random, depth: int, loops: int
) -> str:
    def again() -> str:
        return _any_condition(at, fields, of, random, depth - 1, loops)

    form = random.randrange(8) if depth else 7
    if form == 0:
        return f"not ({again()})"
    if form == 1:
        return random.choice((" and ", " or ")).join(f"({again()})" for _ in range(random.randrange(2, 4)))
    if form == 2 and (there := several(of)):
        return of_several(random.choice(there), random)
    arrays = [f for f in fields if f.kind == "array"]
    if form < 6 and arrays and loops < 3:
        f = random.choice(arrays)
        x = "xyz"[loops]
        inner = members(f)
        if isinstance(f.of, str):
            return f"{random.choice(('any', 'all'))}({_compared(x, f.of, random)} for {x} in {at}{f.name})"
        below = _any_condition(f"{x}.", inner, of, random, depth - 1, loops + 1)
        given = f" if {_any_condition(f'{x}.', inner, of, random, 0, loops + 1)}" * random.randrange(2)
        return f"{random.choice(('any', 'all'))}({below} for {x} in {at}{f.name}{given})"
    structs = [f for f in fields if f.kind == "struct"]
    if form == 6 and structs:
        f = random.choice(structs)
        return _any_condition(f"{at}{f.name}.", members(f), of, random, depth - 1, loops)
    return _of_field(at, random.choice(fields), random) if fields else "size >= 0"


def _of_field(at: str, f: Field, random: Random) -> str:
    path = f"{at}{f.name}"
    if random.random() < 0.15:
        return f"{path} is {random.choice(('', 'not '))}None"
    if f.kind == "array":
        if isinstance(f.of, str) and f.of not in ("boolean", "uuid") and random.random() < 0.5:
            number = OF_FIELDS[f.of] == "number"
            wanted = random.choice(TEXTS) if not number else _number(random)
            return f"{wanted} {random.choice(('in', 'not in'))} {path}"
        return f"len({path}) {random.choice(ORDER)} {random.randrange(3)}"
    if f.kind in ("struct", "records"):
        return f"{path} is None"
    return _compared(path, f.kind, random)


def _compared(path: str, kind: str, random: Random) -> str:
    if kind == "boolean":
        return path
    if OF_FIELDS[kind] == "number":
        form = random.randrange(4)
        if form == 0:
            return f"-9 < {path} * 2 + {path} // {random.randrange(2)} < 512"
        if form == 1:
            return f"{path} in [0, {_number(random)}]"
        return f"{path} {random.choice(ORDER)} {_number(random)}"
    if kind == "uuid":
        return f"{path} != 'AAAAAAAAAAAAAAAAAAAAAA'"
    form = random.randrange(3)
    if form == 0:
        return f"{path}.startswith({random.choice(TEXTS)})"
    if form == 1:
        return f"{path} {random.choice(('in', 'not in'))} ['k', 'x']"
    return f"{path} {random.choice(ORDER)} {random.choice(TEXTS)}"


def of_several(name: str, random: Random) -> str:
    wanted = random.choice(TEXTS) if name in ("topic", "group") else _number(random)
    return f"{name} {random.choice(('==', '!='))} {wanted}"


def _number(random: Random) -> int:
    return random.choice((-1, 0, 1, 5, 200))


def several(of: Layout) -> list[str]:
    """`error` and such, where this side of this version has them."""

    def marks(fields: tuple[Field, ...]) -> set[str | None]:
        there = [f for f in fields if of.version in f.versions and f.name != "forgotten_topics_data"]
        return {f.mark for f in there}.union(*(marks(members(f)) for f in there))

    found = marks(of.fields)
    return [
        name
        for name, wanted in SEVERAL.items()
        if wanted & found and (name != "error" or of.side == "response")
    ]
