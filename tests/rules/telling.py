"""Requests and responses that tell their parts apart, and what an answer says of each part."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from klamm.decoders import API
from klamm.decoders.schema import ERROR, Api, Field, members
from klamm.rules.errors.answers import Values, error_answer, places


def versions(api: Api) -> range:
    return range(api.versions.first, api.versions.last + 1)


def telling(fields: tuple[Field, ...], version: int, numbers: Iterator[int]) -> Values:
    """Values of which no two are alike, two elements to an array; codes are 0."""
    return {f.name: _telling(f, version, numbers) for f in fields if version in f.versions}


def _telling(f: Field, version: int, numbers: Iterator[int]) -> Any:
    if f.kind == "array":
        if members(f):
            return [telling(members(f), version, numbers) for _ in range(2)]
        return [_scalar(str(f.of), f, numbers) for _ in range(2)]
    return telling(members(f), version, numbers) if f.kind == "struct" else _scalar(f.kind, f, numbers)


def _scalar(kind: str, f: Field, numbers: Iterator[int]) -> Any:
    number = next(numbers)
    made = {
        "string": f"{f.name}-{number}",
        "bytes": b"bytes",
        "records": b"records",
        "uuid": number.to_bytes(16),
        "boolean": True,
        "float64": float(number),
        "int8": number % 100,
    }
    return 0 if f.mark == ERROR or "session_epoch" in f.name else made.get(kind, number)


def request_of(api: Api | str, version: int) -> Values:
    of = api if isinstance(api, Api) else API[api]
    return telling(of.request, version, count(1))


def response_of(api: Api, version: int) -> Values:
    return telling(api.response, version, count(1))


def answered(api: Api | str, version: int, request: Values, code: int, *at: Any, **of: Any) -> Values:
    """The answer to a request that expects one."""
    answer = error_answer(api, version, request, code, *at, **of)
    assert answer is not None
    return answer


Told = set[tuple[str, tuple[str, ...], int]]


def told_parts(api: Api, version: int, response: Values) -> Told:
    """Every code with its place and what it is of."""
    found: Told = set()
    for place in places(api, version):
        rows: list[tuple[tuple[str, ...], Values]] = [((), response)]
        for array, keys in zip(place.arrays, place.keys, strict=True):
            rows = [
                ((*of, *(str(element[key] or "") for key in keys)), element)
                for of, values in rows
                for element in values[array[-1]] or ()
            ]
        found |= {(str(place), of, element[place.path[-1]]) for of, element in rows}
    return found


def codes_at(value: Any, path: tuple[str, ...]) -> list[int]:
    if isinstance(value, list):
        return [code for element in value for code in codes_at(element, path)]
    return [value] if not path else codes_at(value[path[0]], path[1:])
