"""/v1/rules: the rules in force, and changes by hand."""

from __future__ import annotations

import asyncio
from typing import Any

from klamm.client.types import Rule, RuleFile, Switch
from klamm.proxy.admin.routes import Ask, Control, Route

TURN = 50  # rules listed before the loop may do something else
Written = dict[str, Any]  # a rule in the form of the file's
UNKNOWN = {404: "There is no such rule"}
WRONG = {409: "There is a rule of this name already, or it is the file's", 422: "The rule has mistakes"}


async def listed(control: Control, ask: Ask) -> list[Rule]:
    found = []
    for rule in control.book.listed():
        found.append(rule)
        if len(found) % TURN == 0:
            await asyncio.sleep(0)
    return found


def one(control: Control, ask: Ask) -> Rule:
    return control.book.state_of(ask.name)


async def add(control: Control, ask: Ask) -> Rule:
    async with control.writing:
        made = await asyncio.to_thread(control.book.added(ask.body, ask.who))
        return control.book.put(made)


async def change(control: Control, ask: Ask) -> Rule:
    async with control.writing:
        made = await asyncio.to_thread(control.book.changed(ask.name, ask.body, ask.who))
        return control.book.put(made, ask.name)


def switch(control: Control, ask: Ask) -> Rule:
    return control.book.switch(ask.name, ask.body.enabled)


def remove(control: Control, ask: Ask) -> None:
    control.book.remove(ask.name)


def reset(control: Control, ask: Ask) -> Rule:
    return control.book.reset(ask.name)


def off(control: Control, ask: Ask) -> list[str]:
    return control.book.off()


def rule_file(control: Control, ask: Ask) -> RuleFile:
    return control.book.rule_file


ROUTES = [
    Route(
        "GET", "/v1/rule-file", rule_file, "The rule file, and why its last reading was rejected", RuleFile
    ),
    Route("GET", "/v1/rules", listed, "The rules in force, in the order in which they are asked", list[Rule]),
    Route(
        "POST",
        "/v1/rules",
        add,
        "Add a rule as in a file; it ends after its `for`, or 10 minutes; `for: forever` never ends",
        Rule,
        201,
        body=Written,
        refusals=WRONG,
    ),
    Route(
        "POST",
        "/v1/rules/off",
        off,
        "End rules by hand, switch off the file's; the names of those that acted",
        list[str],
    ),
    Route("GET", "/v1/rules/{name}", one, "One rule", Rule, refusals=UNKNOWN),
    Route(
        "PUT",
        "/v1/rules/{name}",
        change,
        "Put another rule in the place of one made by hand",
        Rule,
        body=Written,
        refusals=UNKNOWN | WRONG,
    ),
    Route("PATCH", "/v1/rules/{name}", switch, "Switch it on or off", Rule, body=Switch, refusals=UNKNOWN),
    Route(
        "DELETE",
        "/v1/rules/{name}",
        remove,
        "Remove a rule made by hand",
        status=204,
        refusals=UNKNOWN | {409: "The rule is the file's: switch it off"},
    ),
    Route(
        "POST",
        "/v1/rules/{name}/reset",
        reset,
        "Begin counts and times anew",
        Rule,
        refusals=UNKNOWN,
    ),
]
