"""AWS_MSK_IAM, the SASL mechanism of Amazon MSK: a request that is signed (SigV4) and not sent, as JSON.

https://github.com/aws/aws-msk-iam-auth#details has the payload. botocore finds the identity and signs.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Generator
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from klamm.proxy.cluster.conversation import Credentials, Unanswered
from klamm.settings.extras import installing

VERSION, ACTION, SERVICE = "2020_10_22", "kafka-cluster:Connect", "kafka-cluster"
EXPIRES_S = 900
REGION = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-[0-9])\.amazonaws\.com(?:\.cn)?$")
LACKING = (
    "no identity at AWS is found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile as "
    "clusters[].sasl.aws_profile, or give this machine or pod a role"
)

_lock = threading.Lock()
_renewed: dict[str, Any] = {}  # profile -> an identity that botocore itself keeps up to date


def msk_iam(credentials: Credentials) -> Generator[bytes, bytes, None]:
    """Waits for AWS where the identity is a role. Raises Unanswered."""
    try:
        import botocore.exceptions
        import botocore.session
    except ImportError as error:
        raise Unanswered(f"AWS_MSK_IAM needs botocore: {installing('aws')} ({error})") from None
    profile = credentials.username or None
    try:
        session = botocore.session.Session(profile=profile)
        region = credentials.service or _region_in(credentials.host) or session.get_config_variable("region")
        if not region:
            raise Unanswered(f"{credentials.host} names no region of AWS: set clusters[].sasl.aws_region")
        identity = _identity(session, profile or "")
    except botocore.exceptions.BotoCoreError as error:
        raise Unanswered(f"no identity at AWS: {error}") from None
    if identity is None:
        raise Unanswered(LACKING)
    yield json.dumps(signed(identity, credentials.host, region)).encode()


def _region_in(host: str) -> str | None:
    """Of a broker of MSK: b-1.name.abc.c2.kafka.eu-central-1.amazonaws.com."""
    found = REGION.search(host)
    return None if found is None else found[1]


def _identity(session: Any, profile: str) -> Any:
    """Keys in files and the environment are read each time; those of a role are kept until they are renewed.
    Frozen: key id, secret and session token. None: there is none.
    """
    from botocore.credentials import RefreshableCredentials

    with _lock:
        found = _renewed.get(profile) or session.get_credentials()
        if isinstance(found, RefreshableCredentials):
            _renewed[profile] = found
        return None if found is None else found.get_frozen_credentials()


def signed(identity: Any, host: str, region: str) -> dict[str, str]:
    """The payload. `identity`: frozen credentials of botocore."""
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest

    request = AWSRequest("GET", f"https://{host}/?Action={quote(ACTION, safe='')}", headers={"host": host})
    SigV4QueryAuth(identity, SERVICE, region, expires=EXPIRES_S).add_auth(request)
    parts = {key.lower(): value for key, value in parse_qsl(urlsplit(request.url).query)}
    return {"version": VERSION, "host": host, "user-agent": "klamm", **parts}
