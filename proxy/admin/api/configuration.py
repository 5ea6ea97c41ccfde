"""/v1/config: the configuration in force, and reading it again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from klamm.client.types import Reloaded
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.config_types import Address, Listen
from klamm.proxy.control.rule_book import Refused


def config(control: Control, ask: Ask) -> dict[str, Any]:
    config = control.config()
    return {f.name: plain(getattr(config, f.name)) for f in fields(config)}


def plain(value: Any) -> Any:
    """Settings as values for JSON; keys and addresses are written as in klamm.yaml."""
    if isinstance(value, Address | Listen):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name.rstrip("_"): plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


async def reload(control: Control, ask: Ask) -> Reloaded:
    file = control.config_file
    if file.source is None:
        raise Refused(409, "klamm runs without --config: there is no file to read again")
    applied = await file.reload(f"POST /v1/config by {ask.who}")
    if applied is None:
        raise Refused(422, f"nothing was changed: {'; '.join(file.mistakes)}")
    return Reloaded(file.source.file, applied.changed, applied.at_start)


ROUTES = [
    Route("GET", "/v1/config", config, "The configuration in force", dict[str, Any]),
    Route(
        "POST",
        "/v1/config",
        reload,
        "Read klamm.yaml again, and use what has changed in it",
        Reloaded,
        refusals={
            409: "klamm was started without --config",
            422: "The file cannot be used",
        },
    ),
]
