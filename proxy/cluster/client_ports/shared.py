"""The state that all clusters of the process share."""

from __future__ import annotations

from dataclasses import dataclass, field

from klamm.proxy.cluster.client_ports.room import Room
from klamm.proxy.cluster.client_ports.shared_ports import SharedPorts
from klamm.proxy.config import Limits
from klamm.proxy.edge.accepting.pace import Pace
from klamm.proxy.edge.rounds import Rounds
from klamm.proxy.session.connection import HeldBytes
from klamm.proxy.session.turns import Crowd


@dataclass(slots=True)
class Shared:
    """One for the process."""

    held: HeldBytes
    room: Room
    pace: Pace = field(default_factory=lambda: Pace(0))
    crowd: Crowd = field(default_factory=Crowd)
    rounds: Rounds = field(default_factory=Rounds)
    ports: SharedPorts = field(default_factory=SharedPorts)


def shared_by(limits: Limits) -> Shared:
    """With the limits of the settings."""
    each = limits.connections_per_address, limits.connections_per_principal
    pace = Pace(limits.connects_per_second)
    return Shared(HeldBytes(limits.held_bytes), Room(limits.connections, *each), pace)
