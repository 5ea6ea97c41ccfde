"""The table `exchanges`: a row for each exchange. Its columns, in their order; later ones go to the end.

Spark refuses timestamps in nanoseconds, so `time` is in microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class Column(NamedTuple):
    name: str
    type: str
    about: str
    null: str = ""  # when it is


ERRORS = "list<struct<code: int16, name: string, count: int32>>"
COLUMNS = (
    Column("capture", "string", "the run of klamm that saw it"),
    Column("connection", "int64", "the connection, numbered within the capture"),
    Column("exchange", "int64", "the request, numbered within the connection from 0", "not seen"),
    Column("time", "timestamp[us, UTC]", "when the request came; if it was not seen, the response"),
    Column("time_ns", "int64", "the same in ns since 1970"),
    Column("latency_ns", "int64", "from the request to the response", "one of them was not seen"),
    Column("cluster", "string", "klamm's name for the cluster"),
    Column("broker", "string", "`2`, `controller 1`, `bootstrap`, or host:port"),
    Column("client", "string", "host:port"),
    Column("client_id", "string", "as the client calls itself", "it does not"),
    Column("api", "string", "its name", "klamm does not know the API, or the request was not seen"),
    Column("api_key", "int16", "the API's number", "the request was not seen"),
    Column("version", "int16", "of the API", "the request was not seen"),
    Column("correlation_id", "int32", "the id that matches request and response"),
    Column("request_bytes", "int64", "on the wire, with header and size field", "not seen"),
    Column("response_bytes", "int64", "on the wire, with header and size field", "none was seen"),
    Column("awaits", "boolean", "an answer was due: not so with acks=0"),
    Column("answered", "boolean", "the response was seen"),
    Column("request_fate", "string", "`passed`; `rewritten`, `withheld` or `made` by klamm", "not seen"),
    Column("response_fate", "string", "the same of the response", "not seen"),
    Column("topics", "list<string>", "topics that are named in it, or by an id whose name is in the capture"),
    Column("groups", "list<string>", "groups that are named in it"),
    Column("errors", ERRORS, "error codes but 0 that the client was told, and how often each"),
    Column("request_body", "string", "JSON: its fields; records and secrets as their sizes", "not there"),
    Column("response_body", "string", "the same of the response", "not there"),
    Column("principal", "string", "of the client's certificate", "it had none"),
)  # fmt: skip


def schema() -> pa.Schema:
    """The columns as Arrow has them. Raises ModuleNotFoundError without pyarrow."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "int16": pa.int16(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "boolean": pa.bool_(),
        "timestamp[us, UTC]": pa.timestamp("us", "UTC"),
        "list<string>": pa.list_(pa.string()),
        ERRORS: pa.list_(pa.struct([("code", pa.int16()), ("name", pa.string()), ("count", pa.int32())])),
    }
    return pa.schema([pa.field(column.name, types[column.type], bool(column.null)) for column in COLUMNS])
