"""One condition for all APIs, versions and sides that an expression fits: a clause for all of one meaning."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from klamm.decoders import API
from klamm.decoders.headers import API_VERSIONS, UNSUPPORTED_VERSION
from klamm.decoders.schema import Api, Side
from klamm.pipeline.sql.clauses import Clause, clause
from klamm.pipeline.sql.several import Names
from klamm.pipeline.sql.values import FALSE, UNKNOWN, conjunction, disjunction
from klamm.pipeline.sql.words import Asked, follows, settled
from klamm.rules.expressions import Expression
from klamm.rules.expressions.tree import Logic, Node

REFUSED = f"try_variant_get(response_body, '$.error_code', 'INT') = {UNSUPPORTED_VERSION}"
NEVER = Clause(FALSE, frozenset())


def sql(expression: Expression, names: Names | None = None) -> str:
    """Raises ExpressionError and ValueError."""
    keys = expression.apis()
    found: dict[str, dict[int, list[int]]] = {}
    judged_by_body: dict[str, bool] = {}
    for api in API:
        if (not keys or api.key in keys) and not _is_ruled_out(expression.tree, api):
            for version in range(api.versions.first, api.versions.last + 1):
                sides = [
                    _request(expression, api, version, names),
                    _response(expression, api, version, names),
                ]
                text = disjunction(one.text for one in sides)
                if text != FALSE:
                    found.setdefault(text, {}).setdefault(api.key, []).append(version)
                    judged_by_body[text] = all(_has_body(one) for one in sides if one is not NEVER)
    if not found:
        return FALSE
    cases = [(_guard(versions, judged_by_body[text]), text) for text, versions in found.items()]
    if len(cases) == 1:
        return conjunction(cases[0])
    listed = ", ".join(str(key) for key in sorted({key for versions in found.values() for key in versions}))
    whens = " ".join(f"WHEN {guard} THEN {text}" for guard, text in cases)
    return f"(api_key IN ({listed}) AND CASE {whens} END)"


def _is_ruled_out(tree: Node, api: Api) -> bool:
    """Whether one of the terms that must all hold is about the API only, and false for it."""
    terms = tree.terms if isinstance(tree, Logic) and tree.operator == "and" else (tree,)
    of = Asked(api, api.versions.last, "request", api.versions.last)
    return any(follows(term, {"api"}) and settled(term, of).text == FALSE for term in terms)


def _request(expression: Expression, api: Api, version: int, names: Names | None) -> Clause:
    return _there(_clause(expression, Asked(api, version, "request", version), names), "request")


def _response(expression: Expression, api: Api, version: int, names: Names | None) -> Clause:
    """A broker that does not know the version of ApiVersions answers in the layout of version 0 (KIP-511)."""
    made = _clause(expression, Asked(api, version, "response", version), names)
    if api.key == API_VERSIONS and version > 0:
        refused = _clause(expression, Asked(api, 0, "response", version), names)
        if refused.text != made.text:
            text = f"(CASE WHEN {REFUSED} THEN {refused.text} ELSE {made.text} END)"
            made = Clause(text, made.reads | refused.reads | {"response_body"})
    return _there(made, "response")


def _clause(expression: Expression, of: Asked, names: Names | None) -> Clause:
    if expression.fits(of.api, of.version, of.side) is not None:
        return NEVER
    made = clause(expression.tree, of, names)
    return NEVER if made.text in (FALSE, UNKNOWN) else made


def _there(made: Clause, side: Side) -> Clause:
    """The condition that the frame exists and the needed fields were read."""
    if made is NEVER:
        return made
    terms = [f"{side}_{'body' if f'{side}_body' in made.reads else 'bytes'} IS NOT NULL"]
    if side == "response" and "request_body" in made.reads:
        terms.append("(request_body IS NOT NULL OR request_bytes IS NULL)")
    return Clause(conjunction([*terms, made.text]), made.reads)


def _has_body(made: Clause) -> bool:
    """Whether it holds for known versions only, since only their bodies are read."""
    return bool(made.reads & {"request_body", "response_body"})


def _guard(versions: dict[int, list[int]], judged_by_body: bool) -> str:
    """`api_key IN (..) AND version BETWEEN ..`, together for APIs of the same versions."""
    of: dict[tuple[int, int] | None, list[int]] = {}
    for key, there in versions.items():
        for run in _runs(there):
            whole = run == API[key].versions and judged_by_body
            of.setdefault(None if whole else run, []).append(key)
    return disjunction(conjunction([_among("api_key", keys), _between(run)]) for run, keys in of.items())


def _runs(versions: Iterable[int]) -> list[tuple[int, int]]:
    runs = [[v for _, v in run] for _, run in groupby(enumerate(versions), lambda pair: pair[1] - pair[0])]
    return [(run[0], run[-1]) for run in runs]


def _among(column: str, keys: list[int]) -> str:
    return f"{column} = {keys[0]}" if len(keys) == 1 else f"{column} IN ({', '.join(map(str, keys))})"


def _between(run: tuple[int, int] | None) -> str:
    if run is None:
        return "true"
    return f"version = {run[0]}" if run[0] == run[1] else f"version BETWEEN {run[0]} AND {run[1]}"
