"""The timelines by name: what makes their marks, and the filter of the exchanges that it wants, which also
has the condition that a page asks for, "" for none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from klamm.dashboards.web.lanes import groups, producers, sessions
from klamm.dashboards.web.lanes.reading import Timeline
from klamm.dashboards.web.lanes.topics import with_names

TIMELINES: dict[str, tuple[Callable[[], Timeline], Callable[[str], str]]] = {
    "groups": (groups.Groups, partial(with_names, groups.WHERE)),
    "producers": (producers.Sending, partial(with_names, producers.WHERE)),
    "sessions": (sessions.Sessions, sessions.where),
}
