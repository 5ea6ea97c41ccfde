"""Kafka's schemas and errors held against the tables: what is missing, extra or different, by API."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules

from klamm.decoders import API, ERRORS, apis
from klamm.decoders.interpret import Layout
from klamm.decoders.schema import NONE, Api, Field, Side, Versions, int16, int32, string, version_range
from tools.wire_check.compare import differences
from tools.wire_check.declare import declaration
from tools.wire_check.schemas import Schema, schema_layout

AFTER_THE_APIS = 100_000
ERRORS_FILE, HEADERS_FILE = "decoders/error_codes.py", "decoders/headers.py"
_CLIENT_ID = string("client_id", "1", null="1")
_CLASSIC_CLIENT_ID = replace(string("client_id", "2+", null="2+"), kind="classic string")
# The headers, which decoders/headers.py reads and writes by hand.
_HEADERS: dict[str, tuple[Versions, Versions, tuple[Field, ...]]] = {
    "RequestHeader": (
        version_range("0-2"),
        version_range("2+"),
        (
            int16("request_api_key"),
            int16("request_api_version"),
            int32("correlation_id"),
            _CLIENT_ID,
            _CLASSIC_CLIENT_ID,
        ),
    ),
    "ResponseHeader": (version_range("0-1"), version_range("1+"), (int32("correlation_id"),)),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at. `title` groups findings: an API, or "errors"; `file` is where it is declared."""

    key: int
    title: str
    file: str
    side: str
    text: str
    bytes: bool = True  # False: same bytes, other words; or a tagged field that the other end skips
    versions: Versions = NONE


@dataclass(slots=True)
class Report:
    """The result of a comparison, and its size."""

    apis: int = 0  # in the jar
    layouts: int = 0  # in the jar: sides times versions
    compared: int = 0
    errors: int = 0
    headers: int = 0
    declarations: list[str] = field(default_factory=list)  # of APIs that the tables lack
    ours_only: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    newer: list[Finding] = field(
        default_factory=list
    )  # of ours, and not to be known by a release before ours


def check(schemas: list[Schema], errors: list[tuple[int, str, bool]]) -> Report:
    """Compare one Kafka with the tables."""
    report = Report(errors=len(errors))
    # Kafka keeps the files of APIs that it dropped, without versions.
    dropped = {schema.key for schema in schemas if not _every(schema.versions)}
    schemas = [schema for schema in schemas if _every(schema.versions)]
    bodies = [schema for schema in schemas if schema.type != "header"]
    report.apis = len({schema.key for schema in bodies})
    report.layouts = sum(len(_every(schema.versions)) for schema in bodies)
    for schema in schemas:
        if schema.type == "header":
            report.headers += 1
            report.findings += _header(schema)
        elif (api := API.get(schema.key)) is None:
            report.findings.append(_of(schema, "decoders/apis/", "missing"))
        else:
            report.compared += len([v for v in _every(schema.versions) if v in api.versions])
            report.findings += _versions(schema, api)
            report.findings += _layouts(schema, declared_in(api), api.flexible, api.fields(schema.side))
            if schema.type == "request":
                report.findings += _words(schema, api)
    both = {(schema.key, schema.type): schema for schema in bodies}
    report.declarations = [
        declaration(schema, both[key, "response"])
        for (key, side), schema in both.items()
        if side == "request" and key not in API
    ]
    report.ours_only = list(_ours_only(bodies))
    report.newer = list(_newer({schema.key: schema.versions for schema in bodies}, dropped))
    report.findings += _errors(errors)
    return report


def _of(schema: Schema, file: str, text: str, **more: object) -> Finding:
    api = API.get(schema.key)
    title = schema.name if api is None else api.name
    return Finding(schema.key, title, file, schema.type, text, **more)  # type: ignore[arg-type]


def declared_in(api: Api) -> str:
    """The file that declares an API."""
    for module in iter_modules(apis.__path__):
        if api in vars(import_module(f"{apis.__name__}.{module.name}")).values():
            return f"decoders/apis/{module.name}.py"
    raise LookupError(f"no module declares {api.name}")


def _versions(schema: Schema, api: Api) -> Iterator[Finding]:
    for versions in _ranges(version for version in _every(schema.versions) if version not in api.versions):
        yield _of(schema, declared_in(api), f"missing version {versions}; the table has {api.versions}")


def _words(schema: Schema, api: Api) -> Iterator[Finding]:
    """The properties of a whole API, which Kafka has beside its request."""
    last, known = schema.versions.last, schema.name in (api.name, *api.aliases)
    if schema.name != api.name:
        text = f"called {schema.name}" + ("" if known else ": add the alias")
        yield Finding(api.key, api.name, declared_in(api), "", text, bytes=not known)
    if schema.unstable != (last in api.unstable):
        where = "Kafka" if schema.unstable else "the table"
        text = f"version {last} is unstable in {where} only"
        yield Finding(api.key, api.name, declared_in(api), "", text, bytes=False)


def _header(schema: Schema) -> Iterator[Finding]:
    versions, flexible, fields = _HEADERS[schema.name]
    for missing in _ranges(version for version in _every(schema.versions) if version not in versions):
        yield _of(schema, HEADERS_FILE, f"missing version {missing}; klamm knows {versions}")
    yield from _layouts(schema, HEADERS_FILE, flexible, fields)


def _layouts(schema: Schema, file: str, flexible: Versions, fields: tuple[Field, ...]) -> Iterator[Finding]:
    """Versions that the table lacks are compared too: that tells what to add."""
    found = defaultdict(list)
    side: Side = schema.side
    for version in _every(schema.versions):
        ours = Layout(schema.name, version, side, version in flexible, fields)
        for difference in differences(schema_layout(schema, version), ours):
            found[difference].append(version)
    for difference, at in found.items():
        for versions in _ranges(at):
            yield _of(schema, file, difference.text, bytes=difference.bytes, versions=versions)


def _errors(theirs: list[tuple[int, str, bool]]) -> Iterator[Finding]:
    for code, name, retriable in theirs:
        ours = ERRORS.get(code)
        retries, known = "retriable" if retriable else "not retriable", True
        if ours is None:
            text, known = f"{code} {name} missing: {retries}", False
        elif name != ours.name:
            known = name in ours.aliases
            text = f"{code} {ours.name} is called {name}" + ("" if known else ": add the alias")
        elif retriable != ours.retriable:
            text = f"{code} {name} is {retries} in Kafka"
        else:
            continue
        yield Finding(AFTER_THE_APIS, "errors", ERRORS_FILE, "", text, bytes=not known)


def _ours_only(bodies: list[Schema]) -> Iterator[str]:
    """APIs, then versions, that this Kafka does not know."""
    known = {(schema.key, schema.type): schema.versions for schema in bodies}
    yield from (api.name for api in API if (api.key, "request") not in known)
    for api in API:
        versions = known.get((api.key, "request"), api.versions)
        more = [version for version in _every(api.versions) if version not in versions]
        yield from (f"{api.name} {found}" for found in _ranges(more))


def _newer(known: dict[int, Versions], dropped: set[int]) -> Iterator[Finding]:
    """APIs and versions that are newer than this Kafka, or never existed."""
    for api in API:
        if api.key not in known and api.key not in dropped:
            text = "the API is not in Kafka"
        elif api.key in known and api.versions.last > known[api.key].last:
            more = Versions(known[api.key].last + 1, api.versions.last)
            text = f"version {more} is not in Kafka, which has {known[api.key]}"
        else:
            continue
        yield Finding(api.key, api.name, declared_in(api), "", text)


def _every(versions: Versions) -> range:
    return range(versions.first, versions.last + 1)


def _ranges(versions: Iterable[int]) -> list[Versions]:
    """Ascending versions as ranges without gaps."""
    found: list[Versions] = []
    for version in versions:
        if found and found[-1].last == version - 1:
            found[-1] = Versions(found[-1].first, version)
        else:
            found.append(Versions(version, version))
    return found
