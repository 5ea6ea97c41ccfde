"""Warns where another klamm captures into the same folder, which is locked while a capture runs: a lock ends
with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from klamm.proxy.log.events import Events


class CaptureFolder:
    """The lock of the folder of this process and its workers."""

    def __init__(self, log: Events) -> None:
        self.log = log
        self._locked: int | None = None

    def lock(self, folder: str, succeeds: bool = False) -> None:
        """`succeeds`: another klamm captures there until this one has taken its place. Raises OSError if the
        folder is not there.
        """
        self._locked = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        if not self._alone(self._locked) and not succeeds:
            message = (
                f"another klamm captures into {folder} too: their captures are read as one, and the limits "
                "of each (capture.keep_bytes, keep_s) delete segments of both: give each its own, such as "
                f"--capture {folder.rstrip('/')}-2"
            )
            self.log.event("capture_shared", message, "warning", folder=folder)

    def release(self) -> None:
        if self._locked is not None:
            os.close(self._locked)
            self._locked = None

    @staticmethod
    def _alone(folder: int) -> bool:
        """Locks the folder, beside others if they have locked it before."""
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            alone = False
        except OSError:  # a file system without locks
            return True
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return alone
