"""The admin API's OpenAPI document, from its table of routes and their types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from klamm.client.types import Problem
from klamm.proxy.admin.routes import Route
from klamm.rules.file.json_schema import json_schema

REF = "#/components/schemas/{name}"
ALWAYS = {
    400: "The request cannot be read",
    401: "The token is missing or wrong, or a client certificate is missing",
    403: "A page of another site asks, or the caller has no role, or may change nothing",
}
WITH_BODY = {408: "The body did not come in time", 413: "More than 1 MiB", 415: "Not JSON"}
JSON = "application/json"


def document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """The document, as values for JSON."""
    types = [Problem, *(route.gives for route in routes if route.gives)]
    types += [route.body for route in routes if route.body and route.body != dict[str, Any]]
    types += [route.query for route in routes if route.query]
    _, schemas = msgspec.json.schema_components(types, ref_template=REF)
    rules = json.loads(json.dumps(json_schema()).replace("#/$defs/", REF.format(name="action_")))
    schemas["WrittenRule"] = rules["properties"]["rules"]["items"]
    schemas |= {f"action_{name}": schema for name, schema in rules["$defs"].items()}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "klamm", "version": version, "description": "The admin API of a running klamm."},
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            },
        },
        "security": [{}, {"token": []}, {"certificate": []}],
        "paths": paths,
    }


def _operation(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    refusals = ALWAYS | (WITH_BODY if route.changes else {}) | dict(route.refusals)
    operation: dict[str, Any] = {
        "operationId": route.call.__module__.rpartition(".")[2] + "_" + route.call.__name__,
        "summary": route.summary,
        "responses": {
            str(route.status): _content(_schema(route.gives), route.media, "Done"),
            **{str(status): _content(_schema(Problem), JSON, text) for status, text in refusals.items()},
        },
    }
    parameters = _query(route, schemas)
    if "{name}" in route.path:
        name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        parameters.insert(0, name)
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        written = route.body == dict[str, Any]
        schema = {"$ref": REF.format(name="WrittenRule")} if written else _schema(route.body)
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return operation


def _query(route: Route, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    properties = schemas.pop(route.query.__name__)["properties"]
    return [{"name": name, "in": "query", "schema": schema} for name, schema in properties.items()]


def _schema(kind: Any) -> dict[str, Any] | None:
    if kind is None:
        return None
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REF)
    return schema


def _content(schema: dict[str, Any] | None, form: str, text: str) -> dict[str, Any]:
    if schema is None:
        return {"description": text, **({} if form == JSON else {"content": {form: {}}})}
    return {"description": text, "content": {form: {"schema": schema}}}
