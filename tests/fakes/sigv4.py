"""Verifies AWS_MSK_IAM as a broker of MSK does: the signature of a request that was signed and not sent.

Written after AWS's description of Signature Version 4, apart from botocore, which klamm signs with.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

KEYS = {"version", "host", "user-agent", "action", "x-amz-signature"}
SIGNED = ("algorithm", "credential", "date", "expires", "security-token", "signedheaders")
NAMES = {"security-token": "X-Amz-Security-Token", "signedheaders": "X-Amz-SignedHeaders"}


def why_refused(payload: bytes, host: str, region: str, secrets: Mapping[str, str]) -> str | None:
    """None: it is the request of who has one of these secrets, by the ids of their keys."""
    told = json.loads(payload)
    if set(told) - KEYS - {f"x-amz-{name}" for name in SIGNED} or not set(told) >= KEYS:
        return f"other keys: {sorted(told)}"
    fixed = {"version": "2020_10_22", "host": host, "action": "kafka-cluster:Connect"}
    fixed |= {"x-amz-algorithm": "AWS4-HMAC-SHA256", "x-amz-signedheaders": "host"}
    for key, value in fixed.items():
        if told[key] != value:
            return f"{key} is {told[key]}"
    key_id, *scope = told["x-amz-credential"].split("/")
    if scope != [told["x-amz-date"][:8], region, "kafka-cluster", "aws4_request"]:
        return f"the scope is {scope}"
    made = datetime.strptime(told["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if abs(datetime.now(UTC) - made) > timedelta(seconds=int(told["x-amz-expires"])):
        return "it is too old"
    signature = _signature(told, host, scope, secrets.get(key_id, ""))
    return None if hmac.compare_digest(signature, told["x-amz-signature"]) else "the signature is wrong"


def _signature(told: Mapping[str, str], host: str, scope: list[str], secret: str) -> str:
    query = {"Action": told["action"]}
    for name in SIGNED:
        if f"x-amz-{name}" in told:
            query[NAMES.get(name, f"X-Amz-{name.capitalize()}")] = told[f"x-amz-{name}"]
    pairs = sorted((quote(key, safe="-_.~"), quote(value, safe="-_.~")) for key, value in query.items())
    asked = "&".join(f"{key}={value}" for key, value in pairs)
    nothing = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{asked}\nhost:{host}\n\nhost\n{nothing}"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{told['x-amz-date']}\n{'/'.join(scope)}\n{hashed}"
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
