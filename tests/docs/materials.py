"""The files that the pages' commands read: captures of real clients, packets, rules, certificates."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.cli.decoded import request, response
from tests.docs.blocks import Block, blocks
from tests.docs.stage import BIN, Stage, with_klamm

CAPTURES = ("capture", "traffic", "before", "after", "monday", "tuesday", "captures")
PACKETS = ("kafka.pcap", "tcpdump.pcap")
RECORDED_S = 6.0
ERRORS = "rules: [{api: Produce, error: NOT_LEADER_OR_FOLLOWER, times: 2}]\n"
CLIENT = """\
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.location=ca.pem
"""
PAGES = {  # files that are blocks of pages
    "klamm.yaml": ("docs/configuration.md", "clusters:"),
    "my-scenario.yaml": ("docs/scenarios.md", "about:"),
    "rules.yaml": ("README.md", "rules:\n"),
    "hurry.py": ("docs/rules.md", '"""hurry'),
}


def make(stage: Stage, folder: Path) -> None:
    """All of them. The captures hold the same traffic, but for `after`, where one client is missing."""
    folder.mkdir()
    packets = folder / PACKETS[0]
    dump = f"exec tcpdump -i lo -B 65536 -U --immediate-mode -w {packets} tcp portrange 19092-19191"
    tcpdump = stage.start("tcpdump", dump, "listening on")
    (folder / "errors.yaml").write_text(ERRORS)
    capture = f"--capture {folder / CAPTURES[0]} --capture-records keep"
    with with_klamm(stage, capture, f"--rules {folder / 'errors.yaml'}"):
        time.sleep(RECORDED_S)  # the clients work
    tcpdump.stop()
    shutil.copy(packets, folder / PACKETS[1])
    for name in CAPTURES[1:]:
        shutil.copytree(folder / CAPTURES[0], folder / name)
    shutil.rmtree(folder / "after")
    code, printed = stage.run("klamm show before 'not client_id == \"legacy-app\"' -o after", folder)
    assert code == 0, printed
    for name, (page, begins) in PAGES.items():
        (folder / name).write_text(block(page, begins).text + "\n")
    (folder / "ca.pem").write_bytes((stage.folder / "ca.pem").read_bytes())
    (folder / "klamm.pem").write_bytes((stage.folder / "broker.pem").read_bytes())
    (folder / "clients.pem").write_bytes((stage.folder / "ca.pem").read_bytes())
    (folder / ".venv").symlink_to(BIN.parent)
    (folder / "client.properties").write_text(CLIENT)
    asked, answer = {"topics": [{"name": "orders"}]}, {"topics": [{"name": "orders"}]}
    (folder / "frames.bin").write_bytes(request("Metadata", 12, asked) + response("Metadata", 12, answer))
    (folder / "answer.bin").write_bytes(response("Metadata", 12, answer))


def block(page: str, begins: str) -> Block:
    """The one of this page that begins so."""
    (found,) = (one for one in blocks() if one.page == page and one.text.startswith(begins))
    return found
