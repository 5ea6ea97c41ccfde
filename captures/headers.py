"""Judges by its header alone whether an expression can choose an exchange, and leaves out the rows of those
that it cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.frames import NAMING, NOWHERE, peer_of
from klamm.captures.storage.arrow.decoding import column_values
from klamm.captures.storage.arrow.encoding import CONNECTION
from klamm.decoders import API
from klamm.rules.frame import Frame
from klamm.rules.plan import API_VERSIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from klamm.captures.storage.reading import Keep
    from klamm.rules.expressions import Expression

MOST = 100_000  # headers that are known
COLUMNS = ("capture", "connection", "client_id", "api_key", "api_version")
Header = tuple[str | None, int | None, str | None, int, int]  # of these; that of an answer is its request's


class Headers:
    """The headers of exchanges that `where` may choose."""

    def __init__(self, where: Expression) -> None:
        self._where = where
        found = where.apis()
        self._wanted = frozenset(api.key for api in API if not found or api.key in found)
        self._known: dict[Header, bool] = {}

    def may_choose(self, row: Captured) -> bool:
        """Can an exchange with this row be chosen? True, too, where answers tell names of topic ids."""
        of = row.connection or NOWHERE
        header = of.capture, of.number, row.client_id, row.api_key, row.api_version
        found = self._known.get(header)
        if found is None:
            self._forget()
            return self._judge(header, of)
        return found

    def keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch, which has all columns, without the frames of exchanges that cannot be chosen."""
        import pyarrow as pa

        headers = list(zip(*(column_values(batch[name]) for name in COLUMNS), strict=True))
        self._forget()
        known = self._known
        for header in [each for each in set(headers) if each not in known]:
            row = batch.slice(headers.index(header), 1)
            of = CapturedConnection._make(next(iter(column_values(row[name]))) for name in CONNECTION)
            self._judge(header, of if of.capture is not None else NOWHERE)
        kinds = column_values(batch["kind"])
        kept = [kind != "frame" or known[header] for kind, header in zip(kinds, headers, strict=True)]
        return batch if all(kept) else batch.filter(pa.array(kept, pa.bool_()))

    def _forget(self) -> None:
        if len(self._known) >= MOST:
            self._known.clear()

    def _judge(self, header: Header, connection: CapturedConnection) -> bool:
        found = self._known[header] = self._can_be_chosen(connection, *header[2:])
        return found

    def _can_be_chosen(
        self, connection: CapturedConnection, client_id: str | None, key: int, version: int
    ) -> bool:
        if key in NAMING:
            return True
        if key not in self._wanted:
            return False
        if key == API_VERSIONS or not self._where.reads_headers_only:  # that answer may have another version
            return True
        if version not in API[key].versions:
            return False
        peer = peer_of(connection)
        request = Frame(API[key], version, "request", b"", client_id, peer, 0)
        response = Frame(API[key], version, "response", b"", client_id, peer, 0, request)
        return self._where.holds(request, response)


def keeping(where: Expression | None) -> Keep | None:
    """For `read`: leaves out the frames of which it is known that `where` does not choose their exchanges."""
    if where is None or not (where.reads_headers_only or where.apis()):
        return None
    return Headers(where).keep
