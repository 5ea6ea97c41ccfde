"""The acts of rules on the two frames of an exchange, as the log and the admin API tell them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klamm.client.types import Fate
from klamm.rules.expressions import SIDES
from klamm.rules.frame import Treatment

Treatments = tuple[Treatment | None, Treatment | None]
UNTREATED: Treatments = (None, None)


def rules_of(treatments: Treatments) -> list[str]:
    """The names of the rules that acted, in the order in which they did, each once."""
    return list(dict.fromkeys(name for each in treatments if each is not None for name in each.rules))


def delays_of(treatments: Treatments) -> dict[str, float]:
    """`request_delay_ms` and `response_delay_ms` of the frames that rules held."""
    return {
        f"{side}_delay_ms": round(each.delay_ns / 1e6, 3)
        for side, each in zip(SIDES, treatments, strict=True)
        if each is not None and each.delay_ns
    }


def fates_of(fields: Mapping[str, Any], changed: bool, treatments: Treatments) -> dict[str, Fate]:
    """`fates` of an Exchange. `fields`: those of its event. `changed`: as of the Exchange."""
    request, response = treatments
    fates: dict[str, Fate] = {}
    if request is not None and (request.withheld or request.changed):
        fates["request"] = "withheld" if request.withheld else "rewritten"
    if fields.get("withheld") or (response is not None and response.withheld):
        fates["response"] = "withheld"
    elif changed:
        fates["response"] = "rewritten"
    elif fields.get("origin") == "klamm":
        fates["response"] = "made"
    return fates


def treated(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same fields with `rules`, delays and `fates` in place of the treatments, unless they are there
    already; origin "klamm" where rules changed the answer.
    """
    treatments: Treatments = fields.get("treatments", UNTREATED)
    answer = treatments[1]
    changed = fields.get("changed", False) or (answer is not None and answer.changed)
    left = {key: value for key, value in fields.items() if key not in ("treatments", "withheld")}
    if changed:
        left |= {"origin": "klamm", "changed": True}
    fates = fates_of(fields, changed, treatments)
    told = {"rules": rules_of(treatments), **delays_of(treatments), "fates": fates}
    return left | {key: value for key, value in told.items() if value and key not in left}
