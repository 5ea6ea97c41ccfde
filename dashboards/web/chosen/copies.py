"""An exchange as text to be used elsewhere: a filter, a rule, a test, a command line, JSON."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.chosen.following import alike
from klamm.dashboards.web.frames import frames_of
from klamm.dashboards.web.ruling.drafts import TIMES, rule_of
from klamm.dashboards.web.ruling.forms import as_yaml
from klamm.decoders import API
from klamm.decoders.headers import request_frame, response_frame
from klamm.proxy.control.exchange import body
from klamm.rules.frame import Frame

LONGEST = 100_000  # characters of an argument; Linux takes 131,071
NOT_A_WORD = re.compile(r"\W+")


class NoCopy(Exception):
    """The exchange has no such form; the text says why."""


def _filter(one: Exchange) -> str:
    return alike(one)


def _rule(one: Exchange) -> str:
    return as_yaml(rule_of(one))


def _test(one: Exchange) -> str:
    rule = rule_of(one)
    selectors = [f"{name}={rule[name]!r}" for name in ("client", "topic", "group") if name in rule]
    arguments = ", ".join([repr(one.api), repr(rule["error"]), *selectors, f"times={TIMES}"])
    words = f"{one.api} of {one.client_id or 'a client'} {rule['error']}"
    return "\n".join(
        (
            f"def test_{NOT_A_WORD.sub('_', words).lower().strip('_')}(klamm):",
            "    # pytest --klamm-bootstrap HOST:PORT; the client under test connects to klamm.bootstrap",
            f"    fault = klamm.inject({arguments})",
            "    ...  # what makes the client send such a request",
            "    fault.wait(hits=1)",
            f"    klamm.wait_for({one.api!r}, where={_answered(one)!r})",
            "",
        )
    )


def _answered(one: Exchange) -> str:
    """Exchanges like this one, that the broker has answered well."""
    return f"{alike(one)} and not error != NONE"


def _decode(one: Exchange) -> str:
    """Both frames, with their headers made anew: the correlation id is 0 where it is not known."""
    api, number, texts = API[one.api], one.correlation_id or 0, []
    if one.request is not None and one.request.raw is not None:
        frame = request_frame(api, one.version, number, one.client_id, b64decode(one.request.raw))
        texts.append(frame.hex())
    if one.response is not None and one.response.raw is not None:
        texts.append(response_frame(api, one.version, number, b64decode(one.response.raw)).hex())
    if not texts:
        reasons = [side.reason for side in (one.request, one.response) if side is not None and side.reason]
        raise NoCopy(f"no bytes are there: {'; '.join(dict.fromkeys(reasons)) or 'only sizes are known'}")
    both = "".join(texts)
    needs = (
        ""
        if one.request is not None and one.request.raw is not None
        else (f" --api {one.api} --version {one.version} --side response")
    )
    if len(both) <= LONGEST:
        return f"klamm decode {both}{needs}"
    return f"klamm decode -{needs} <<'END'\n{both}\nEND"


def _json(one: Exchange) -> str:
    """As `klamm tail --json -v` has it."""
    sides = zip((one.request, one.response), frames_of(one), strict=True)
    request, response = (_values(side, frame) for side, frame in sides)
    whole = replace(one, request=request, response=response)
    return json.dumps(msgspec.to_builtins(whole), indent=2)


def _values(side: Body | None, frame: Frame | None) -> Body | None:
    if side is None or frame is None:
        return side
    return replace(body(frame, raw=False), withheld=side.withheld)


FORMS: dict[str, Callable[[Exchange], str]] = {
    "filter": _filter, "rule": _rule, "test": _test, "decode": _decode, "JSON": _json,
}  # fmt: skip
OF_AN_API = frozenset({"rule", "test", "decode"})


def copy(one: Exchange, form: str) -> str:
    """The exchange in this form. Raises NoCopy."""
    if form not in FORMS:
        raise NoCopy(f"{form[:30]!r} is no form: {', '.join(FORMS)} are")
    if form in OF_AN_API and one.api not in API:
        raise NoCopy("klamm does not know its API")
    return FORMS[form](one)
