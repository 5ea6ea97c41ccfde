"""The system's limit of open files, and the connections that it allows."""

from __future__ import annotations

import resource

SPARE_FILES = 64  # of klamm's own, apart from two a connection: listeners, the log, the admin server


def connections_possible(ports_ahead: int = 0) -> int:
    """As many as files can be open, once the limit is as high as it may be set; `ports_ahead` are listeners
    besides those of known nodes.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return max(1, (hard - SPARE_FILES - ports_ahead) // 2)
