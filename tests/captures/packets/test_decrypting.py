"""Kafka in TLS, read with the secrets of the client by tshark."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from klamm.captures.packets.decrypting import NotDecrypted, Plain, decrypted
from tests.captures.dialogue import Dialogue, pcap, request, response
from tests.fakes import tls

SAID = [(request(number), response(number, api_keys=[])) for number in range(5)]


def encrypted(folder: Path, version: ssl.TLSVersion, handshake: bool = True) -> tuple[Path, Path]:
    """The file of packets, and that of the secrets. Both ends of TLS are here, and no socket is. Without
    `handshake`, the packets are those behind it.
    """
    broker_context = tls.make(folder)
    client_context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    client_context.maximum_version = version
    client_context.keylog_filename = str(folder / "secrets")
    to_client, to_broker = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_broker, server_hostname="localhost")
    broker = broker_context.wrap_bio(to_broker, to_client, server_side=True)
    dialogue = Dialogue().open()
    sent = {"request": ssl.MemoryBIO(), "response": ssl.MemoryBIO()}

    def carry() -> None:
        for side, bio in (("request", to_broker), ("response", to_client)):
            if data := bio.read():
                dialogue.send(side, data, most=500)  # type: ignore[arg-type]
                sent[side].write(data)
        to_broker.write(sent["request"].read())
        to_client.write(sent["response"].read())

    waiting = {client, broker}
    while waiting:
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.discard(end)
            except ssl.SSLWantReadError:
                pass
            carry()
    first = 0 if handshake else len(dialogue.packets)
    for asked, answered in SAID:
        client.write(asked)
        carry()
        assert broker.read(1 << 16) == asked
        broker.write(answered)
        carry()
        assert client.read(1 << 16) == answered
    file = folder / "tls.pcap"
    file.write_bytes(pcap(dialogue.close().packets[first:]))
    return file, folder / "secrets"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_what_was_said_is_read(version: ssl.TLSVersion, tmp_path: Path) -> None:
    found = list(decrypted(*encrypted(tmp_path, version)))
    assert [plain.data for plain in found] == [data for exchange in SAID for data in exchange]
    assert [plain.number for plain in found] == sorted(plain.number for plain in found)


def test_a_connection_whose_handshake_was_not_captured_is_not_read(tmp_path: Path) -> None:
    assert list(decrypted(*encrypted(tmp_path, ssl.TLSVersion.TLSv1_3, handshake=False))) == []


def test_reading_may_stop_early_and_other_secrets_read_nothing(tmp_path: Path) -> None:
    file, secrets = encrypted(tmp_path, ssl.TLSVersion.TLSv1_3)
    found = decrypted(file, secrets)
    assert isinstance(next(found), Plain)
    found.close()  # type: ignore[attr-defined]
    secrets.write_text("")
    assert list(decrypted(file, secrets)) == []


def test_what_tshark_cannot_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "foreign").write_bytes(bytes(range(256)))
    with pytest.raises(NotDecrypted, match="foreign"):
        list(decrypted(tmp_path / "foreign", tmp_path / "secrets"))
