"""`klamm web`: the inspector in a browser, over a running klamm or over captures."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from klamm.cli.captures.capture_files import captures
from klamm.cli.live.asking import add_options, telling, user
from klamm.cli.running.scalars import listen_address
from klamm.cli.saying import WrongWord, say
from klamm.dashboards.web.source import Source
from klamm.proxy import own_memory
from klamm.settings.extras import installing
from klamm.settings.loopback import is_loopback

LISTEN = "127.0.0.1:19090"
DESCRIPTION = """\
Look at exchanges in a browser: those of a running klamm as they happen, or those of captures.
"""

EXAMPLES = """\
examples:
  klamm web
  klamm web --listen 127.0.0.1:8080
  klamm web capture/
"""
NEEDS_TOKEN = "--listen {0}: other machines reach it, so callers must show a token: add --token-file FILE"


def add_parser(subparsers: Any) -> None:
    """Declare the command."""
    usage = "klamm web [CAPTURE...] [OPTION...]"
    parser = subparsers.add_parser("web", usage=usage, description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("captures", nargs="*", metavar="CAPTURE", help="files and folders [a running klamm]")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=_listen,
        default=LISTEN,
        help=f"where the page is; other machines need the token [{LISTEN}]",
    )
    add_options(parser)


def _listen(text: str) -> str:
    try:
        listen_address(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None
    return text


@telling
def run(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C or SIGTERM. 1 something is not installed, 2 wrong usage."""
    paths = captures(arguments.captures)
    if paths and find_spec("pyarrow") is None:
        return say(f"klamm web CAPTURE needs pyarrow: {installing('capture')}", 1)
    token = _token(arguments)
    if token is None and not is_loopback(listen_address(arguments.listen).host):
        raise WrongWord(NEEDS_TOKEN.format(arguments.listen))
    own_memory.hide()  # it may have a token
    try:
        asyncio.run(_serve(arguments, paths, token))
    except OSError as problem:
        raise WrongWord(str(problem.strerror)) from None
    return 0


def _token(arguments: argparse.Namespace) -> str | None:
    """Raises OSError for a file that cannot be read."""
    file = arguments.token_file
    token = os.environ.get("KLAMM_TOKEN") if file is None else Path(file).read_text()
    return (token or "").strip() or None


async def _serve(arguments: argparse.Namespace, paths: list[str], token: str | None) -> None:
    from klamm.dashboards.web.server import start

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    at = listen_address(arguments.listen)
    async with AsyncExitStack() as stack:
        source = await _source(arguments, paths, token, stack)
        server = await start(source, at, None if is_loopback(at.host) else token)
        stack.push_async_callback(server.close)
        print(f"klamm web: {server.url}", flush=True)
        await ended.wait()


async def _source(
    arguments: argparse.Namespace, paths: list[str], token: str | None, stack: AsyncExitStack
) -> Source:
    if paths:
        from klamm.dashboards.web.captured import Captures

        return Captures(paths)
    from klamm.client.asynchronous import AsyncKlamm
    from klamm.dashboards.web.live import Live

    who = {"ca": arguments.admin_ca, "cert": arguments.admin_cert, "key": arguments.admin_key}
    klamm = AsyncKlamm(arguments.admin, token, f"{user()} (klamm web)", **who)
    return Live(await stack.enter_async_context(klamm))
