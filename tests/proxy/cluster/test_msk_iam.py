"""AWS_MSK_IAM, to a broker that checks the signature for the name that it advertises."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from klamm.proxy import config
from klamm.proxy.cluster.conversation import Credentials, Unanswered
from klamm.proxy.cluster.own_sasl import msk_iam
from klamm.proxy.config_types import Address, Text
from tests.fakes.broker import Broker, Cluster, Connection, Request
from tests.fakes.edge import Edge, edge
from tests.fakes.guarded import Guarded
from tests.fakes.sigv4 import why_refused
from tests.fakes.waiting import on_uvloop

BEAT = {"group_id": "g", "member_id": "m"}
HOST, REGION = "b-1.demo.a1b2c3.c2.kafka.eu-central-1.amazonaws.com", "eu-central-1"
SECRETS = {"AKIDENVIRONMENT": "secret/of+environment", "AKIDPROFILE": "secret/of+profile"}
PROFILES = """\
[default]
aws_access_key_id = AKIDOTHER
aws_secret_access_key = other
[klamm]
aws_access_key_id = AKIDPROFILE
aws_secret_access_key = {secret}
aws_session_token = session/token+=
"""


@pytest.fixture(autouse=True)
def _no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRETS["AKIDENVIRONMENT"])


class Msk(Guarded):
    """A broker of MSK. `refusals`: why it let nobody in."""

    def __init__(self, broker: Broker, region: str) -> None:
        super().__init__(broker)
        self.region = region
        self.refusals: list[str] = []

    def _authenticate(self, connection: Connection, request: Request) -> dict[str, Any]:
        refused = why_refused(request.values["auth_bytes"], HOST, self.region, SECRETS)
        if refused is not None:
            self.refusals.append(refused)
            return {"error_code": 58, "error_message": "Access denied", "auth_bytes": b""}
        self.token = request.values["auth_bytes"]
        said = super()._authenticate(connection, request)
        return said | {"auth_bytes": b'{"version": "2020_10_22", "request-id": "1"}'}


@asynccontextmanager
async def in_front(own: config.Sasl, region: str = REGION) -> AsyncIterator[tuple[Edge, Msk]]:
    async with Broker(Cluster(), 1).listening(named=HOST) as broker:
        guard = Msk(broker, region)
        at = {Address(HOST, broker.port): Address("127.0.0.1", broker.port)}
        async with edge([(HOST, broker.port)], sasl=own, map=at) as klamm:
            yield klamm, guard


@pytest.mark.usefixtures("_keys")
@on_uvloop
async def test_the_brokers_own_name_is_signed_with_the_keys_of_the_environment() -> None:
    async with in_front(config.Sasl("AWS_MSK_IAM")) as (klamm, guard):
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
        assert guard.refusals == []
        assert len(guard.tokens) >= 2  # klamm's own question, and a client


@on_uvloop
async def test_a_profile_may_be_named_and_its_new_keys_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(PROFILES.format(secret=SECRETS["AKIDPROFILE"]))
    own = config.Sasl("AWS_MSK_IAM", aws_profile=Text("klamm"))
    async with in_front(own) as (klamm, guard):
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
        file.write_text(PROFILES.format(secret="old-one"))
        assert await (await klamm.client(1)).ended() == "RST"
        [line] = await klamm.logged("broker_unreachable")
        assert "refuses the identity at AWS of klamm: Access denied" in line.message
        assert "old-one" not in line.message
        assert set(guard.refusals) == {"the signature is wrong"}
        file.write_text(PROFILES.format(secret=SECRETS["AKIDPROFILE"]))
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)


@pytest.mark.usefixtures("_keys")
@on_uvloop
async def test_the_region_may_be_set() -> None:
    own = config.Sasl("AWS_MSK_IAM", aws_region=Text("us-gov-west-1"))
    async with in_front(own, "us-gov-west-1") as (klamm, guard):
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
        assert guard.refusals == []


def first(host: str, profile: str = "") -> bytes:
    return next(msk_iam.msk_iam(Credentials("AWS_MSK_IAM", profile, "", host=host)))


@pytest.mark.usefixtures("_keys")
@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, REGION),
        ("boot-a1.c1.kafka-serverless.us-east-2.amazonaws.com", "us-east-2"),
        ("b-1.x.a1.c2.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.example.com", "ap-south-1"),
    ],
)
def test_the_region_is_in_the_name_of_the_broker_or_that_of_the_environment(
    host: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-south-1")
    assert why_refused(first(host), host, region, SECRETS) is None
    assert why_refused(first(host), "other.example", region, SECRETS) is not None
    assert why_refused(first(host), host, region, {"AKIDENVIRONMENT": "other"}) == "the signature is wrong"


def test_no_identity_and_no_region_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unanswered, match=r"no identity at AWS is found: set AWS_ACCESS_KEY_ID"):
        first(HOST)
    with pytest.raises(Unanswered, match=r"no identity at AWS: The config profile \(nobody\)"):
        first(HOST, "nobody")
    with pytest.raises(Unanswered, match=r"names no region of AWS: set clusters\[\]\.sasl\.aws_region"):
        first("localhost")


def test_the_identity_of_a_role_is_kept_and_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msk_iam, "_renewed", {})
    counted = tmp_path / "counted"
    given = '{"Version": 1, "AccessKeyId": "AKIDENVIRONMENT", "SecretAccessKey": "%s", "Expiration": "%s"}'
    told = given % (SECRETS["AKIDENVIRONMENT"], "2099-01-01T00:00:00Z")
    (tmp_path / "give").write_text(f"#!/bin/sh\necho x >> {counted}\necho '{told}'\n")
    (tmp_path / "give").chmod(0o700)
    (tmp_path / "config").write_text(f"[profile role]\ncredential_process = {tmp_path}/give\n")
    for _ in range(3):
        assert why_refused(first(HOST, "role"), HOST, REGION, SECRETS) is None
    assert counted.read_text() == "x\n"
