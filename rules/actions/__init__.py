"""The actions of rules, one class each: the fields are its parameters, the docstring is its help."""

from __future__ import annotations

from klamm.rules.actions import (
    advertise,
    assign,
    corrupt,
    delay,
    disconnect,
    duplicate,
    error,
    keep,
    pause,
    refuse,
    require,
    streams,
    throttle,
)
from klamm.rules.rule import Action

ACTIONS: dict[str, type[Action]] = {
    made.name: made
    for made in (
        error.Error,
        delay.Delay,
        pause.Pausing,
        disconnect.Dropping,
        disconnect.Blackhole,
        disconnect.Disconnect,
        disconnect.Down,
        disconnect.Refuse,
        disconnect.Stall,
        disconnect.Reset,
        streams.Bandwidth,
        streams.Slicer,
        streams.LimitData,
        streams.SlowClose,
        streams.PacketLoss,
        throttle.Throttle,
        throttle.Rate,
        refuse.Block,
        refuse.Deny,
        require.Require,
        duplicate.Duplicate,
        corrupt.Corrupt,
        assign.Set,
        refuse.Count,
        refuse.Say,
        keep.Keeping,
        advertise.Clamp,
        advertise.Hide,
        advertise.StaleMetadata,
    )
}
"""By their keys in a rule file."""
