"""Payloads in a record of a classic group, and in a field that always has the same payload."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from klamm.cli import FAILED
from klamm.decoders.payloads import encode_payload
from klamm.decoders.records import Batch, Record, write
from tests.cli.decoded import Captured, objects, printed, request, response
from tests.cli.test_payloads_shown import LACKS, MEMBERS, OF_KAFKAJS, OWNED

KEY = encode_payload("GroupMetadataKey", {"group": "shop"})


def fetched(protocol_type: str, protocol: str, *members: tuple[bytes, bytes]) -> bytes:
    """A Fetch 11 response with the record of a group whose members wrote these bytes."""
    rows = [
        {"member_id": f"m{number}", "client_id": "app", "client_host": "/10.0.0.7", "session_timeout": 1}
        | {"subscription": subscription, "assignment": assignment}
        for number, (subscription, assignment) in enumerate(members)
    ]
    values = {"protocol_type": protocol_type, "generation": 1, "protocol": protocol, "leader": "m0"}
    value = encode_payload("GroupMetadataValue", {**values, "members": rows})
    records = write(Batch(), [Record(0, 0, KEY, value)])
    partitions = [{"partition_index": 0, "records": records}]
    return response("Fetch", 11, {"responses": [{"topic": "__consumer_offsets", "partitions": partitions}]})


def members(found: dict[str, Any]) -> list[dict[str, Any]]:
    (record,) = found["body"]["responses"][0]["partitions"][0]["records"][0]["records"]
    of: list[dict[str, Any]] = record["value_of"]["values"]["members"]
    return of


def test_the_record_of_a_group_has_what_its_members_wrote(capsys: Captured) -> None:
    said, given = MEMBERS["consumer", "metadata"], MEMBERS["consumer", "assignment"]
    words = [fetched("consumer", "sticky", (said, given)).hex(), "--api", "Fetch", "--version", "11"]
    out = printed(capsys, *words, "--full")
    assert (
        'subscription=ConsumerProtocolSubscription(version=3, topics=["orders", "b"], user_data=Sticky' in out
    )
    assert 'assignment=ConsumerProtocolAssignment(version=3, assigned_partitions=[(topic="orders"' in out
    (one,) = members(objects(capsys, *words)[0])
    assert (one["subscription"], one["assignment"]) == (b64encode(said).decode(), b64encode(given).decode())
    read = one["subscription_of"]
    assert read["name"] == "ConsumerProtocolSubscription"
    assert read["values"]["owned_partitions"] == OWNED
    assert read["values"]["user_data_of"]["values"] == {"previous_assignment": OWNED, "generation": 4}
    assert one["assignment_of"]["values"]["assigned_partitions"] == OWNED


def test_the_record_of_a_group_of_connect(capsys: Captured) -> None:
    said, given = MEMBERS["connect", "metadata"], MEMBERS["connect", "assignment"]
    words = [fetched("connect", "default", (said, given)).hex(), "--api", "Fetch", "--version", "11"]
    (one,) = members(objects(capsys, *words)[0])
    assert one["subscription_of"]["name"] == "ConnectSubscription"
    assert one["assignment_of"]["values"]["assignment"] == [{"connector": "sink", "tasks": [0, 1]}]


def test_a_member_that_wrote_less_is_shown_with_the_reason(capsys: Captured) -> None:
    words = [fetched("consumer", "range", (OF_KAFKAJS, b"")).hex(), "--api", "Fetch", "--version", "11"]
    out = printed(capsys, *words, "--full")
    assert 'subscription=ConsumerProtocolSubscription(version=1, topics=["orders"], user_data=' in out
    assert f") ({LACKS}), assignment=" in out
    (one,) = members(objects(capsys, *words)[0])
    assert one["subscription_of"]["reason"] == LACKS
    assert "assignment_of" not in one


def test_a_group_of_no_protocol_type_of_kafkas_own_keeps_its_bytes(capsys: Captured) -> None:
    words = [fetched("mine", "x", (b"any", b"thing")).hex(), "--api", "Fetch", "--version", "11"]
    assert "subscription=3 bytes" in printed(capsys, *words, "--full")
    assert members(objects(capsys, *words)[0])[0].keys().isdisjoint({"subscription_of", "assignment_of"})


PRINCIPAL = {"type": "User", "name": "alice", "token_authenticated": True}


def envelope(principal: bytes | None) -> list[str]:
    values = {"request_data": b"secret", "request_principal": principal, "client_host_address": b"\x7f\0\0\1"}
    return [request("Envelope", 0, values).hex(), "--api", "Envelope", "--version", "0"]


def test_an_envelope_names_the_sender(capsys: Captured) -> None:
    words = envelope(encode_payload("DefaultPrincipalData", PRINCIPAL))
    lines = [
        line.split("  ")[-1].strip() for line in printed(capsys, *words, "--side", "request").splitlines()
    ]
    out = "\n".join(lines)
    assert "DefaultPrincipalData v0" in out
    assert "alice" in out
    (found,) = objects(capsys, *words, "--side", "request")
    assert found["body"]["request_principal"]["values"] == {"version": 0, **PRINCIPAL}


@pytest.mark.parametrize("principal", [None, b"", b"\0", b"\0\7ab", b"alice"])
def test_a_principal_that_another_program_wrote_stays_as_it_is(
    principal: bytes | None, capsys: Captured
) -> None:
    (found,) = objects(capsys, *envelope(principal), "--side", "request")
    stays = None if principal is None else b64encode(principal).decode()
    assert found["body"]["request_principal"] == stays


def test_a_principal_that_ends_early_is_shown_with_the_reason(capsys: Captured) -> None:
    whole = encode_payload("DefaultPrincipalData", PRINCIPAL)
    (found,) = objects(capsys, *envelope(whole[:7]), "--side", "request", code=FAILED)
    assert found["body"]["request_principal"]["values"] == {"version": 0, "type": "User"}
    assert found["body"]["request_principal"]["reason"]
