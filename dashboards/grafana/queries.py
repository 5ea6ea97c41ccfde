"""Expressions of PromQL over what the variables of a dashboard select."""

from __future__ import annotations

CLUSTER = "cluster=~'$cluster', instance=~'$instance'"
INSTANCE = "instance=~'$instance'"
BROKERS = "origin='broker'"  # errors that brokers sent
RULES = "origin='klamm'"  # errors that rules made
SHOWN_TIME = "[$__range]"
STEP = "[$__rate_interval]"

# Brokers answer these late on purpose: they wait for records, or for the other members of a group.
WAITING = "api!~'Fetch|ShareFetch|JoinGroup|SyncGroup'"


def of(metric: str, where: str = "", about: str = CLUSTER) -> str:
    """The series of a metric; `where` has more matchers, `about` those of the variables."""
    return f"{metric}{{{about}{', ' if where else ''}{where}}}"


def total(expression: str, by: str = "") -> str:
    """The sum, for each value of the labels in `by`."""
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"


def rate(metric: str, by: str = "", where: str = "", about: str = CLUSTER) -> str:
    """How much a counter grows in a second."""
    return total(f"rate({of(metric, where, about)}{STEP})", by)


def increase(metric: str, by: str = "", where: str = "", about: str = CLUSTER) -> str:
    """How much a counter grew in the time that the dashboard shows."""
    return total(f"increase({of(metric, where, about)}{SHOWN_TIME})", by)


def quantile(share: float, metric: str, by: str = "", where: str = "") -> str:
    """The value of a histogram below which a share of the values lies."""
    buckets = rate(f"{metric}_bucket", f"{by}, le" if by else "le", where)
    return f"histogram_quantile({share}, {buckets})"


def most(expression: str) -> str:
    """The ten series with the highest values."""
    return f"topk(10, {expression})"


def or_zero(expression: str) -> str:
    """For counters that have no series before their first count."""
    return f"({expression} or vector(0))"


def of_klamm(expression: str) -> str:
    """Metrics of processes, of klamm's only: others have them under the same names."""
    return f"{expression} * on (job, instance) group_left () {of('klamm_build_info', about=INSTANCE)}"
