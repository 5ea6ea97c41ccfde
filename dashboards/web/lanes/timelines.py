"""The timelines by name: what makes their marks, and the exchanges that it wants."""

from __future__ import annotations

from klamm.dashboards.web.lanes import groups, producers, sessions

TIMELINES = {
    "groups": (groups.Groups, groups.WHERE),
    "producers": (producers.Sending, producers.WHERE),
    "sessions": (sessions.Sessions, sessions.WHERE),
}
