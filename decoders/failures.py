"""The errors between bytes and values; the attributes say where they are."""

from __future__ import annotations

from klamm.decoders.schema import Side


def left_over(count: int) -> str:
    """The reason of a message that goes on behind the end of its layout."""
    return f"{count} byte{'s' * (count != 1)} left over"


class DecodeError(ValueError):
    """Bytes that are not the layout they claim to be. `offset` counts from the start of the body."""

    def __init__(self, reason: str, *, api: str, version: int, side: Side, path: str, offset: int) -> None:
        self.reason, self.api, self.version, self.side, self.path, self.offset = (
            reason,
            api,
            version,
            side,
            path,
            offset,
        )
        super().__init__(f"{api} v{version} {side}, {path or 'body'} at byte {offset}: {reason}")


class EncodeError(ValueError):
    """Values that the layout cannot carry."""

    def __init__(self, reason: str, *, api: str, version: int, side: Side, path: str) -> None:
        self.reason, self.api, self.version, self.side, self.path = reason, api, version, side, path
        super().__init__(f"{api} v{version} {side}, {path or 'body'}: {reason}")


class UnknownApi(LookupError):
    """No API of that key or name, or no such version of it."""
