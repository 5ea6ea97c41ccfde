"""/v1/capture: captures of the traffic, in a folder on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from klamm.client.types import Capture, CaptureWish, Mistake
from klamm.proxy import config
from klamm.proxy.admin.api.exchanges import condition
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.config_types import Filter, Folder
from klamm.proxy.control.rule_book import Refused


async def state(control: Control, ask: Ask) -> Capture:
    await control.state.refresh()
    running = control.captures().running
    if running is None:
        raise Refused(404, "nothing is captured now")
    return running.state()


async def begin(control: Control, ask: Ask) -> Capture:
    wish: CaptureWish = ask.body
    captures = control.captures()
    if wish.filter is not None:
        await condition(control, wish.filter, "filter")
    if captures.running is not None:
        raise Refused(409, f"a capture into {captures.running.settings.folder} runs: end it first")
    where = None if wish.filter is None else Filter(wish.filter)
    try:
        settings = config.Capture(_folder(wish.folder), where, wish.records)
        captures.made(settings)()
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or str(wrong)
        raise Refused(422, f"nothing can be captured into {wish.folder!r}: {reason}") from None
    return await state(control, ask)


def _folder(text: str) -> Folder:
    """Raises Refused for no name, and for the folder that klamm runs in, or one around it."""
    if not text.strip():
        raise Refused(422, "which folder?", [Mistake("folder", "a folder's name is needed")])
    if Path.cwd().is_relative_to(os.path.realpath(text)):
        why = f"{text!r} is the folder that klamm runs in, or one around it: name a folder of its own"
        raise Refused(422, why, [Mistake("folder", why)])
    return Folder(text)


async def end(control: Control, ask: Ask) -> None:
    await control.captures().end()


ROUTES = [
    Route(
        "GET",
        "/v1/capture",
        state,
        "The capture that runs",
        Capture,
        refusals={404: "Nothing is captured now"},
    ),
    Route(
        "POST",
        "/v1/capture",
        begin,
        "Begin a capture, also of connections that are open already",
        Capture,
        201,
        body=CaptureWish,
        refusals={409: "A capture runs already", 422: "The folder or the filter cannot be used"},
    ),
    Route("DELETE", "/v1/capture", end, "End the capture; the answer comes when all is written", status=204),
]
