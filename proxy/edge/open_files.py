"""The system's limit of open files, and the connections that it allows."""

from __future__ import annotations

import resource

ADMIN_FILES = 256  # connections of the admin server and of that for metrics
SPARE_FILES = 64 + ADMIN_FILES  # of klamm's own, apart from two a connection: 32 listeners, the log
SPARE_LISTENERS = 32


def connections_possible(ports_ahead: int = 0) -> int:
    """Raise the limit as far as allowed; gives the number of connections for which it is enough.
    `ports_ahead`: listening ports besides those of known nodes.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return max(1, (hard - SPARE_FILES - ports_ahead) // 2)
