"""Rules beside the clusters that klamm stands in front of: selectors that no cluster or broker fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from klamm.rules.file.reach import Fault
from klamm.rules.rule import Rule

Known = Mapping[str, frozenset[str]]
"""The nodes of each cluster, as rules name them: "2", "controller 1". Where a cluster has none of a kind, its
nodes of that kind are not known yet.
"""


def unmet(rule: Rule, known: Known) -> Iterator[Fault]:
    """The clusters and nodes that a rule names and that do not exist, and node ids that several clusters
    have. Nothing where no cluster is known.
    """
    if not known:
        return
    chosen = [name for name in known if rule.cluster is None or rule.cluster(name)]
    if not chosen:
        yield (
            ("cluster",),
            f"there is no cluster {str(rule.cluster)!r}: klamm knows {_list(sorted(known))}",
        )
        return
    for label in sorted(rule.broker - {"bootstrap"}):
        alike = {name: [each for each in known[name] if _kind(each) == _kind(label)] for name in chosen}
        there = [name for name in chosen if label in alike[name]]
        if not there and all(alike.values()):
            where = "; ".join(
                f"{name} has {_list(sorted(nodes, key=_order))}" for name, nodes in alike.items()
            )
            yield ("broker",), f"there is no {_label(label)}: {where}"
        elif len(there) > 1 and rule.cluster is None:
            several = f"{_label(label)} is in the clusters {_list(there)}"
            yield ("broker",), f"{several}: choose with cluster: {there[0]}, or take all with cluster: '*'"


def _kind(label: str) -> str:
    return label.rpartition(" ")[0]


def _order(label: str) -> int:
    return int(label.rpartition(" ")[2])


def _label(label: str) -> str:
    return label if _kind(label) else f"broker {label}"


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
