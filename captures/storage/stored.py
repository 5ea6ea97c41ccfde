"""Rows as they are stored, frames cut, and as they are read, frames whole."""

from __future__ import annotations

from klamm.captures.captured import Captured
from klamm.captures.streams.cutting import cut, filled


def stored(row: Captured) -> Captured:
    """A whole row with its blanks cut out of its frames."""
    if not row.blanks and not row.forwarded_blanks:
        return row
    frame = None if row.frame is None else cut(row.frame, row.blanks)
    forwarded = None if row.forwarded is None else cut(row.forwarded, row.forwarded_blanks)
    return row._replace(frame=frame, forwarded=forwarded)


def whole(row: Captured) -> Captured:
    """A stored row with zeros where its blanks are. Raises ValueError where these do not fit."""
    if not row.blanks and not row.forwarded_blanks:
        return row
    frame = None if row.frame is None else filled(row.frame, row.blanks)
    forwarded = None if row.forwarded is None else filled(row.forwarded, row.forwarded_blanks)
    return row._replace(frame=frame, forwarded=forwarded)
