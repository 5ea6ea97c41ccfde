"""`klamm decode`: what it takes for input, the tree, JSON, pairs of frames, failures, and its guesses."""

import io
import json
import re
import sys
from base64 import b64encode
from pathlib import Path
from random import Random

import pytest

from klamm.cli import FAILED, FINE, USAGE, main
from klamm.decoders import API, ERRORS, encode
from klamm.decoders.headers import request_frame
from klamm.decoders.payloads import encode_payload
from klamm.decoders.schema import Api, Side
from tests.cli.decoded import Captured, objects, printed, request, response
from tests.fakes.messages import values_of

ASKED = request("Metadata", 12, {"topics": [{"name": "orders"}]})
BROKER = {"node_id": 1, "host": "kafka-1", "port": 9092, "rack": None}
PARTITIONS = [{"partition_index": n, "leader_id": 1, "replica_nodes": [1, 2, 3]} for n in range(14)]
PARTITIONS[12]["error_code"] = 5
ANSWER = response(
    "Metadata", 12, {"brokers": [BROKER], "topics": [{"name": "orders", "partitions": PARTITIONS}]}
)


def test_a_request_is_a_tree_with_offsets_and_bytes(capsys: Captured) -> None:
    assert (
        printed(capsys, ASKED.hex())
        == """\
hex, 46 bytes, 1 frame, size in front

Metadata v12 request  (frame 1, key 3, header v2)
  0000  00 00 00 2a                 size: 42
  0004                              header
  0004  00 03                         request_api_key: 3 Metadata
  0006  00 0c                         request_api_version: 12
  0008  00 00 00 07                   correlation_id: 7
  000c  00 03 61 70 70                client_id: "app"
  0012                              body
  0012  02                            topics: 1 element
  0013                                  [0]
  0013  00 00 00 00 00 00 00 00 ..        topic_id: AAAAAAAAAAAAAAAAAAAAAA
  0023  07 6f 72 64 65 72 73              name: "orders"
  002b  01                            allow_auto_topic_creation: true
  002c  00                            include_topic_authorized_operations: false
"""
    )


def offsets(dump: bytes, width: int = 16) -> list[tuple[int, bytes]]:
    return [(start, dump[start : start + width]) for start in range(0, len(dump), width)]


def text_of(row: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)


FORMS = {
    "spaced hex": ASKED.hex(" "),
    "hex with colons": ASKED.hex(":").upper(),
    "hex on several lines": ASKED.hex("\n", 4),
    "hex with 0x": ", ".join(f"0x{byte:02x}" for byte in ASKED),
    "escapes": "".join(f"\\x{byte:02x}" for byte in ASKED),
    "a bytes literal": repr(ASKED),
    "a list of signed numbers": str([byte - 256 if byte > 127 else byte for byte in ASKED]),
    "an array of C": "/* Frame (46 bytes) */\nstatic const unsigned char pkt1[46] = {\n"
    + ",\n".join(", ".join(f"0x{byte:02x}" for byte in row) + " /* ... */" for _, row in offsets(ASKED, 8))
    + "\n};\n",
    "xxd -i": "unsigned char raw[] = {\n  "
    + ", ".join(f"0x{byte:02x}" for byte in ASKED)
    + "\n};\nunsigned int raw_len = 46;",
    "an array of Java": "byte[] b = new byte[] {"
    + ", ".join(f"(byte) 0x{byte:02x}" for byte in ASKED)
    + "};",
    "an array of Go": f"[]byte{{{', '.join(f'{byte:#x}' for byte in ASKED)}}}",
    "an array with short numbers": "{" + ", ".join(f"{byte:#04x}" if byte else "0" for byte in ASKED) + "}",
    "short numbers with 0x": " ".join(f"0x{byte:x}" for byte in ASKED),
    "Go's fmt": f"[{' '.join(map(str, ASKED))}]",
    "a Buffer of Node": f"<Buffer {ASKED.hex(' ')}>",
    "a Buffer of Node as JSON": f'{{"type": "Buffer", "data": {list(ASKED)}}}',
    "hex in quotes": f'"{ASKED.hex()}"',
    "base64": b64encode(ASKED).decode(),
    "base64 without padding": b64encode(ASKED).decode().rstrip("="),
    "xxd": "\n".join(f"{at:08x}: {row.hex(' ', 2):<39}  {text_of(row)}" for at, row in offsets(ASKED)),
    "hexdump -C": "\n".join(
        f"{at:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  |{text_of(row)}|"
        for at, row in offsets(ASKED)
    )
    + f"\n{len(ASKED):08x}",
    "od -t x1": "\n".join(f"{at:07o} {row.hex(' ')}" for at, row in offsets(ASKED)) + f"\n{len(ASKED):07o}",
    "od -x": "\n".join(
        f"{at:07o} " + " ".join(row[n : n + 2][::-1].hex() for n in range(0, len(row), 2))
        for at, row in offsets(ASKED)
    )
    + f"\n{len(ASKED):07o}",
    "Wireshark": "\n".join(f"{at:04x}   {row.hex(' '):<47}   {text_of(row)}" for at, row in offsets(ASKED)),
    "tcpdump": "\n".join(
        f"\t0x{at:04x}:  {row.hex(' ', -2):<39}  {text_of(row)}" for at, row in offsets(ASKED)
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_whatever_people_paste_is_read(form: str, capsys: Captured) -> None:
    assert printed(capsys, FORMS[form]).splitlines()[1:] == printed(capsys, ASKED.hex()).splitlines()[1:]


def test_a_dump_with_left_out_lines_is_filled_again(capsys: Captured) -> None:
    frame = request("SaslAuthenticate", 0, {"auth_bytes": bytes(200)}, client_id=None)
    rows = [f"{at:08x}  {row.hex(' ')}" for at, row in offsets(frame)]
    dump = "\n".join([*rows[:3], "*", rows[-1], f"{len(frame):08x}"])
    assert len(rows) > 6
    assert "auth_bytes: *** (200 bytes)" in printed(capsys, dump)


def test_words_that_the_shell_has_split_are_one_dump(capsys: Captured) -> None:
    assert printed(capsys, *ASKED.hex(" ", 4).split()) == printed(capsys, ASKED.hex())


@pytest.mark.parametrize("as_text", [False, True])
def test_a_file_holds_raw_frames_or_one_of_the_texts(as_text: bool, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "frames"
    file.write_bytes(FORMS["xxd"].encode() + b"\n" if as_text else ASKED)
    lines = printed(capsys, str(file)).splitlines()
    assert lines[0] == f"{file}: {'a hex dump' if as_text else 'raw bytes'}, 46 bytes, 1 frame, size in front"
    assert lines[1:] == printed(capsys, ASKED.hex()).splitlines()[1:]


@pytest.mark.parametrize("words", [(), ("-",)])
def test_the_standard_input_is_read_too(
    words: tuple[str, ...], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ASKED)))
    assert printed(capsys, *words).startswith("standard input: raw bytes, 46 bytes, 1 frame, size in front\n")


def test_a_request_without_its_size_is_known_as_one(capsys: Captured) -> None:
    lines = printed(capsys, ASKED[4:].hex()).splitlines()
    assert lines[0] == "hex, 42 bytes, 1 frame, no size in front"
    assert [line[36:] for line in lines[3:]] == [
        line[36:] for line in printed(capsys, ASKED.hex()).splitlines()[4:]
    ]


@pytest.mark.parametrize("parts", [(ASKED + ANSWER,), (ASKED, ANSWER), (ASKED[4:], ANSWER[4:])])
def test_a_response_is_read_as_the_request_before_it_says(parts: tuple[bytes, ...], capsys: Captured) -> None:
    out = printed(capsys, *[part.hex() for part in parts])
    assert "Metadata v12 response  (frame 2, key 3, header v1, answers frame 1)" in out
    assert 'host: "kafka-1"' in out


def test_responses_find_their_requests_by_correlation_id_in_any_order(capsys: Captured) -> None:
    frames = [
        request("Heartbeat", 4, {}, 1), request("ApiVersions", 3, {}, 2), request("Heartbeat", 0, {}, 1),
        response("ApiVersions", 3, {}, 2), response("Heartbeat", 4, {}, 1), response("Heartbeat", 0, {}, 1),
    ]  # fmt: skip
    found = objects(capsys, b"".join(frames).hex())
    assert [(one["api"], one["api_version"], one["side"], one.get("answers")) for one in found] == [
        ("Heartbeat", 4, "request", None), ("ApiVersions", 3, "request", None),
        ("Heartbeat", 0, "request", None), ("ApiVersions", 3, "response", 2),
        ("Heartbeat", 4, "response", 1), ("Heartbeat", 0, "response", 3),
    ]  # fmt: skip


def test_a_response_is_read_as_it_is_told(capsys: Captured) -> None:
    assert objects(capsys, ANSWER.hex(), "--api", "metadata", "--version", "12")[0]["body"]["brokers"] == [
        BROKER
    ]


def test_a_refusal_of_the_version_is_read_in_version_0(capsys: Captured) -> None:
    frames = request("ApiVersions", 4, {}) + response("ApiVersions", 0, {"error_code": 35})
    out = printed(capsys, frames.hex())
    assert "ApiVersions v0 response" in out
    assert "the broker does not know v4 and answers in v0 (KIP-511)" in out
    assert "error_code: 35 UNSUPPORTED_VERSION" in out


def test_long_arrays_are_cut_but_their_errors_are_told(capsys: Captured) -> None:
    out = printed(capsys, (ASKED + ANSWER).hex())
    assert "... 4 more, with errors: 1 x LEADER_NOT_AVAILABLE" in out
    assert "partition_index: 12" not in out
    full = printed(capsys, (ASKED + ANSWER).hex(), "--full")
    assert "more" not in full
    assert "error_code: 5 LEADER_NOT_AVAILABLE" in full


def bytes_in(tree: str, size: int) -> bytes:
    """The bytes that the lines of a tree show, each where its line says."""
    data = bytearray(size)
    for line in tree.splitlines():
        if re.match("  [0-9a-f]{4}  ", line):
            at, raw = int(line[2:6], 16), bytes.fromhex(line[8:31])
            data[at : at + len(raw)] = raw
    return bytes(data)


def test_full_shows_every_byte_of_the_frame(capsys: Captured) -> None:
    assert bytes_in(printed(capsys, (ASKED + ANSWER).hex(), "--full"), len(ASKED + ANSWER)) == ASKED + ANSWER


def test_numbers_are_named_where_kafka_names_them(capsys: Captured) -> None:
    asked = request(
        "ListOffsets", 6, {"isolation_level": 1, "topics": [{"name": "a", "partitions": [{"timestamp": -2}]}]}
    )
    out = printed(capsys, asked.hex())
    assert "isolation_level: 1 read_committed" in out
    assert "timestamp: -2 earliest" in out
    answered = printed(capsys, (ASKED + ANSWER).hex())
    assert "topic_authorized_operations: -2147483648 not asked" in answered
    keys = response("ApiVersions", 3, {"api_keys": [{"api_key": 18, "max_version": 4}]})
    assert "api_key: 18 ApiVersions" in printed(capsys, keys.hex(), "--api", "18", "--version", "3")


def test_unknown_tags_are_shown_with_their_bytes(capsys: Captured) -> None:
    asked = request("Heartbeat", 4, {"unknown_tagged_fields": [(9, b"new")]})
    out = printed(capsys, asked.hex())
    assert 'tag 9: 3 bytes "new"' in out
    (found,) = objects(capsys, asked.hex())
    assert found["body"]["unknown_tagged_fields"] == [{"tag": 9, "data": "bmV3"}]


def test_no_text_in_a_frame_commands_the_terminal(capsys: Captured) -> None:
    out = printed(capsys, request("Metadata", 1, {"topics": [{"name": "\x1b[2J\u202e\x07"}]}).hex())
    assert all(char.isprintable() for char in out.replace("\n", ""))
    assert r"\u001b[2J" in out


SIGNED_IN = request("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0wonderland"})


def test_secrets_are_hidden_in_text_and_bytes(capsys: Captured) -> None:
    out = printed(capsys, SIGNED_IN.hex())
    assert "auth_bytes: *** (17 bytes)" in out
    assert "secrets are hidden; --secrets shows them" in out
    assert "wonder" not in out
    assert b"alice".hex(" ") not in out
    assert objects(capsys, SIGNED_IN.hex())[0]["body"] == {"auth_bytes": "*** (17 bytes)"}


def test_secrets_are_shown_on_demand(capsys: Captured) -> None:
    assert b"alice".hex(" ")[:5] in printed(capsys, SIGNED_IN.hex(), "--secrets")
    assert objects(capsys, SIGNED_IN.hex(), "--secrets")[0]["body"] == {
        "auth_bytes": "AGFsaWNlAHdvbmRlcmxhbmQ="
    }


@pytest.mark.parametrize("size", range(len(SIGNED_IN) - 16, len(SIGNED_IN)))
def test_secrets_are_hidden_about_a_failure_too(size: int, capsys: Captured) -> None:
    out = printed(capsys, SIGNED_IN[:size].hex(), code=FAILED)
    data = bytes.fromhex(
        "".join(
            word
            for line in out.splitlines()[-5:]
            for word in line[8:55].split()
            if len(word) == 2 and word not in ("**", "^^")
        )
    )
    assert b"a" not in data.removeprefix(SIGNED_IN[:18])


def test_a_frame_cut_short_is_shown_up_to_the_cut(capsys: Captured) -> None:
    out = printed(capsys, ASKED[:-6].hex(), code=FAILED)
    assert "size: 42  6 bytes are missing" in out
    assert "name  <- needs 6 bytes, 4 left" in out
    where = "topics[0].name at byte 36 (0x24), 18 into the body"
    assert out.splitlines()[-4:] == [
        f"  Metadata v12 request cannot be read: {where}: needs 6 bytes, 4 left",
        "  0010  70 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00",
        "  0020  00 00 00 07 6f 72 64 65",
        "                    ^^",
    ]


def test_a_failure_is_in_the_json_beside_what_was_read(capsys: Captured) -> None:
    (found,) = objects(capsys, ASKED[:-6].hex(), code=FAILED)
    assert found["body"] == {"topics": [{"topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}]}
    assert found["missing_bytes"] == 6
    assert found["error"] == {
        "in": "body", "path": "topics[0].name", "offset": 36, "reason": "needs 6 bytes, 4 left",
    }  # fmt: skip


def test_bytes_that_are_left_over_are_a_failure(capsys: Captured) -> None:
    longer = request_frame(API["Heartbeat"], 0, 7, "app", encode({}, "Heartbeat", 0, "request") + b"\xab\xcd")
    out = printed(capsys, longer.hex(), code=FAILED)
    assert "  0019  ab cd                         left over: 2 bytes\n" in out
    assert "body at byte 25 (0x19), 8 into the body: 2 bytes left over" in out


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize("api", API, ids=lambda api: api.name)
def test_every_layout_is_read_with_every_byte_in_its_place(api: Api, side: Side, capsys: Captured) -> None:
    random = Random(f"{api.name} {side}")
    version = random.randint(api.versions.first, api.versions.last)
    values = values_of(api.fields(side), version, random)
    if side == "request":
        frame, options = request(api.name, version, values), []
    else:
        frame, options = response(api.name, version, values), ["--api", api.name, "--version", str(version)]
    code = main(["decode", "--json", frame.hex(), "--side", side, "--places", "--secrets", *options])
    found = json.loads(capsys.readouterr().out)
    assert code == (FAILED if "unreadable" in found else FINE)  # its records are random bytes
    assert (found["api"], found["api_version"], found["side"]) == (api.name, version, side)
    assert "error" not in found
    for path, (start, size) in found["places"].items():
        assert 4 <= start <= start + size <= len(frame), path
    main(["decode", frame.hex(), "--side", side, "--full", "--secrets", *options])
    captured = capsys.readouterr()
    assert captured.err == ""
    assert bytes_in(captured.out, len(frame)) == frame


def output(capsys: Captured, *words: str) -> str:
    assert main(["decode", *words]) == USAGE
    return capsys.readouterr().err


def test_a_response_alone_is_refused_with_what_it_fits(capsys: Captured) -> None:
    assert output(capsys, ANSWER.hex()) == (
        f"klamm decode: frame 1 (at byte 0, {len(ANSWER)} bytes): a response does not name its API: "
        "add --api NAME --version N, or its request\n"
        "  fits: Metadata 11-12\n"
    )


def test_what_it_fits_is_in_the_json(capsys: Captured) -> None:
    (found,) = objects(capsys, ANSWER.hex(), code=USAGE)
    assert found["fits"] == [{"api": "Metadata", "versions": [11, 12], "likely": True}]


def test_with_an_api_alone_its_fitting_versions_are_told(capsys: Captured) -> None:
    assert "add --version N\n  fits: Metadata 11-12\n" in output(capsys, ANSWER.hex(), "--api", "Metadata")
    assert "no response that klamm knows fits" in output(capsys, ANSWER.hex(), "--api", "Fetch")


@pytest.mark.parametrize("api", API, ids=lambda api: api.name)
def test_a_response_fits_at_least_what_it_is(api: Api, capsys: Captured) -> None:
    random = Random(api.name)
    version = api.versions.last
    frame = response(api.name, version, values_of(api.response, version, random))
    (found,) = objects(capsys, frame.hex(), "--side", "response", code=USAGE)
    assert any(fit["api"] == api.name and version in fit["versions"] for fit in found["fits"])


def test_what_follows_the_last_frame_is_told(capsys: Captured) -> None:
    assert main(["decode", (ASKED + ANSWER + bytes(4) + b"\xff" * 5).hex()]) == USAGE
    captured = capsys.readouterr()
    assert "Metadata v12 response  (frame 2" in captured.out
    assert captured.err == (
        f"klamm decode: frame 3 (at byte {len(ASKED + ANSWER)}, 4 bytes): too short for a frame\n"
        f"klamm decode: frame 4 (at byte {len(ASKED + ANSWER) + 4}, 5 bytes): no frame begins here\n"
    )


def test_the_other_frames_of_a_file_are_read_all_the_same(capsys: Captured) -> None:
    found = objects(capsys, (ANSWER + ASKED).hex(), code=USAGE)
    assert [one.get("api") for one in found] == [None, "Metadata"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["0000001"], "klamm decode: hex with an odd number of digits (7): one is missing\n"),
        (["xyz!"], "klamm decode: neither hex nor base64: 'xyz!'\n"),
        ([""], "klamm decode: the input is empty\n"),
        (["/dev/null"], "klamm decode: /dev/null: the input is empty\n"),
        (["./frames.bin"], "klamm decode: ./frames.bin: no such file\n"),
        (["00", "--version", "3"], "klamm decode: --version is of --api: say both\n"),
        (["00", "--api", "Metdata"], "klamm decode: unknown API 'Metdata'; did you mean Metadata?\n"),
        (["00", "--api", "Heartbeat", "--version", "9"], "klamm decode: Heartbeat has versions 0-4, not 9\n"),
        (["00"], "klamm decode: frame 1 (at byte 0, 1 bytes): too short for a frame\n"),
        (
            ["--side", "request", "0000000803e7000300000007"],
            "klamm decode: frame 1 (at byte 0, 12 bytes): not a request that klamm knows: "
            "API key 999, which klamm does not know\n",
        ),
        (
            ["--side", "request", "000000080003006300000007"],
            "klamm decode: frame 1 (at byte 0, 12 bytes): not a request that klamm knows: "
            f"Metadata v99, of which klamm knows {API[3].versions}\n",
        ),
    ],
)
def test_what_cannot_be_decoded_is_wrong_usage(words: list[str], expected: str, capsys: Captured) -> None:
    assert output(capsys, *words) == expected


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (bytes.fromhex("d4c3b2a1"), "a packet capture: copy the TCP payload out of it"),
        (b"\x1f\x8b\x08", "a gzip file: unpack it first"),
    ],
)
def test_other_files_are_named_for_what_they_are(
    start: bytes, reason: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "file"
    file.write_bytes(start + bytes(40))
    assert output(capsys, str(file)).startswith(f"klamm decode: {file}: {reason}")


def test_what_members_of_a_group_say_is_read_too(capsys: Captured) -> None:
    owned = [{"topic": "orders", "partitions": [0, 1]}]
    extra = encode_payload("StickyAssignorUserData", {"previous_assignment": owned, "generation": 4})
    output = {"version": 1, "topics": ["orders"], "user_data": extra, "owned_partitions": owned}
    metadata = encode_payload("ConsumerProtocolSubscription", output)
    frames = request(
        "JoinGroup", 4, {"protocol_type": "consumer", "protocols": [{"name": "sticky", "metadata": metadata}]}
    ) + response("JoinGroup", 4, {"protocol_name": "sticky", "members": [{"metadata": metadata}]})
    out = printed(capsys, frames.hex())
    assert out.count("ConsumerProtocolSubscription v1\n") == 2
    assert out.count('topics: ["orders"]') == 2
    assert out.count("StickyAssignorUserData v1\n") == 2
    asked, answered = objects(capsys, frames.hex())
    found = asked["body"]["protocols"][0]["metadata"]
    assert found == answered["body"]["members"][0]["metadata"]
    assert (found["payload"], found["values"]["topics"]) == ("ConsumerProtocolSubscription", ["orders"])
    assert found["values"]["user_data"]["values"] == {"previous_assignment": owned, "generation": 4}


KAFKAJS = (  # as kafkajs 2.2.1 writes it
    "00000059000b00020000000700076b61666b616a73000473686f70000075300000ea6000000008636f6e73756d6572"
    "000000010012526f756e64526f62696e41737369676e65720000001200010000000100066f726465727300000000"
)
LACKS = (
    "ends at byte 18 before owned_partitions, which version 1 has; version 0's layout fits; "
    "kafka-go, @platformatic/kafka, sarama-cluster and kafkajs before 2.2.2 write so"
)


def test_a_subscription_that_ends_early_is_shown_as_far_as_it_goes_and_then_what_is_missing(
    capsys: Captured,
) -> None:
    out = printed(capsys, KAFKAJS, code=FAILED)
    end = out[out.index("ConsumerProtocolSubscription v1\n") :].splitlines()
    assert [line[38:].strip() for line in end[1:]] == [
        "version: 1", 'topics: ["orders"]', "user_data: 0 bytes", f"missing: {LACKS}",
    ]  # fmt: skip
    assert [line[2:6] for line in end[1:]] == ["004b", "004d", "0059", "005d"]
    (found,) = objects(capsys, KAFKAJS, code=FAILED)
    assert found["body"]["protocols"][0]["metadata"] == {
        "payload": "ConsumerProtocolSubscription",
        "version": 1,
        "values": {"version": 1, "topics": ["orders"], "user_data": ""},
        "reason": LACKS,
    }
    assert found["unreadable"] == [{"path": "protocols[0].metadata", "offset": 0x5D, "reason": LACKS}]


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        (b"\0\1\0\0", ["version: 1", "unreadable: topics at byte 2: needs 4 bytes, 2 left"]),
        (
            b"\0\0" + b"\0\0\0\2" + b"\0\1a" + b"\0\5orde",
            ["version: 0", 'topics: ["a"]', "unreadable: topics[1] at byte 11: needs 5 bytes, 4 left"],
        ),
        (
            b"\0\0" + b"\0\0\0\0" + b"\0\0\0\1x" + b"abc",
            [
                "version: 0", "topics: empty", 'user_data: 1 byte "x"',
                "unreadable: the payload at byte 11: 3 bytes left over",
            ],
        ),
    ],
)  # fmt: skip
def test_a_member_who_says_nonsense_is_told_and_the_frame_is_read(
    metadata: bytes, shown: list[str], capsys: Captured
) -> None:
    protocols = [{"name": "range", "metadata": metadata}]
    frame = request("JoinGroup", 4, {"protocol_type": "consumer", "protocols": protocols})
    out = printed(capsys, frame.hex(), code=FAILED)
    assert [line[38:].strip() for line in out.splitlines()[-len(shown) :]] == shown
    (found,) = objects(capsys, frame.hex(), code=FAILED)
    assert f"unreadable: {found['unreadable'][0]['reason']}" == shown[-1]


def test_every_error_code_is_named(capsys: Captured) -> None:
    for error in ERRORS:
        frame = response("Heartbeat", 0, {"error_code": error.code})
        assert f"error_code: {error.code} {error.name}" in printed(
            capsys, frame.hex(), "--api", "Heartbeat", "--version", "0"
        )


def test_on_a_terminal_it_has_colours_and_no_line_is_wider(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = printed(capsys, ASKED.hex())
    assert "\x1b[1mMetadata v12 request" in out
    lines = [re.sub("\x1b[^m]*m", "", line) for line in out.splitlines()]
    assert max(map(len, lines)) <= 60
    assert lines[-1].endswith("…")


def test_on_a_terminal_the_reason_of_a_failure_is_not_cut(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = re.sub("\x1b[^m]*m", "", printed(capsys, ASKED[:-6].hex(), code=FAILED))
    assert "18 into the body: needs 6 bytes, 4 left" in " ".join(out.split())
