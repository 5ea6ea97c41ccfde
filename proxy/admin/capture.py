"""/v1/capture: what goes through, kept in a folder on this machine."""

from __future__ import annotations

from klamm.client.types import Capture, CaptureWish
from klamm.proxy import config
from klamm.proxy.admin.exchanges import condition
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.control.rule_book import Refused


def state(control: Control, ask: Ask) -> Capture:
    running = control.captures().running
    if running is None:
        raise Refused(404, "nothing is captured now")
    return running.state()


async def begin(control: Control, ask: Ask) -> Capture:
    wish: CaptureWish = ask.body
    captures = control.captures()
    if wish.filter is not None:
        await condition(wish.filter, "filter")
    if captures.running is not None:
        raise Refused(409, f"a capture into {captures.running.settings.folder} runs: end it first")
    where = None if wish.filter is None else config.Filter(wish.filter)
    settings = config.Capture(config.Folder(wish.folder), where, wish.records)
    try:
        return captures.begin(settings).state()
    except (OSError, ValueError) as wrong:
        reason = getattr(wrong, "strerror", None) or str(wrong)
        raise Refused(422, f"nothing can be captured into {wish.folder!r}: {reason}") from None


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
        "Begin to capture, connections that are open too",
        Capture,
        201,
        body=CaptureWish,
        refusals={409: "A capture runs already", 422: "The folder or the filter cannot be used"},
    ),
    Route("DELETE", "/v1/capture", end, "End the capture; when this is answered, all is written", status=204),
]
