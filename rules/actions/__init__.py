"""What rules can do, one class each: its fields are its parameters, its docstring what the help says."""

from __future__ import annotations

from klamm.rules.actions import delay, disconnect, error, streams
from klamm.rules.rule import Action

ACTIONS: dict[str, type[Action]] = {
    made.name: made
    for made in (
        error.Error,
        delay.Delay,
        disconnect.Dropping,
        disconnect.Blackhole,
        disconnect.Disconnect,
        disconnect.Down,
        streams.Bandwidth,
        streams.Slicer,
        streams.LimitData,
        streams.SlowClose,
        streams.PacketLoss,
    )
}
"""By their keys in a rule file."""
