"""Keeps the newest log lines of a library, and prints them where an action fails or hangs."""

import faulthandler
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

KEPT = 300  # lines


class RecentLog(logging.Handler):
    """Keeps the last lines of the library's loggers, at all levels."""

    def __init__(self, library: str) -> None:
        super().__init__()
        self.records: deque[logging.LogRecord] = deque(maxlen=KEPT)
        self.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
        logger = logging.getLogger(library)
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def tell(self) -> None:
        """On standard error."""
        for record in list(self.records):
            print(self.format(record)[:1000], file=sys.stderr)

    @contextmanager
    def told_of_failure(self, after_s: float) -> Iterator[None]:
        """Tell it if the block fails; if it is not over by then, tell it and where the threads are, and
        end the process.
        """
        timer = threading.Timer(after_s, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        except BaseException:
            self.tell()
            raise
        finally:
            timer.cancel()

    def _end(self) -> None:
        self.tell()
        faulthandler.dump_traceback(all_threads=True)
        os._exit(3)
