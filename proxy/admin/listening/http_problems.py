"""Logs the problems of an HTTP listener as events; aiohttp would print tracebacks between klamm's lines."""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

from klamm.proxy.log.events import Events


class Problems(logging.Handler):
    """Logs a request that is no HTTP as a warning, and an error of klamm's own as one; each once a minute."""

    def __init__(self, log: Events) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        wrong = record.exc_info[1] if record.exc_info else None
        if isinstance(wrong, HttpProcessingError | RequestPayloadError):
            reason = " ".join(str(wrong).split())[:200]
            self.log.event("bad_http_request", f"refused: {reason}", "warning", per="bad_http_request")
        else:
            message = f"a request to klamm failed: {wrong!r}" if wrong is not None else record.getMessage()
            self.log.event("http_failed", message, "error", per=type(wrong).__name__)


def logger(log: Events | None) -> logging.Logger:
    """A logger for one listener. None: it says nothing."""
    made = logging.Logger("klamm.http", logging.WARNING)
    made.addHandler(logging.NullHandler() if log is None else Problems(log))
    return made
