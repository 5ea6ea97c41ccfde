"""The commands, curl and a probe at the admin API of `klamm run` over TLS, with tokens and certificates."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.brokers import certificates
from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.e2e.klamm_process import COMMAND

pytestmark = pytest.mark.brokers

RULE = '{"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}'
TOKEN, READ_ONLY = "a-token-for-all", "a-token-to-look"


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Desk:
    """A klamm that runs with TLS, and callers of its admin API."""

    def __init__(self, process: Process, at: str, folder: Path) -> None:
        self.process, self.at, self.folder = process, at, folder

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def run(self, *words: str, **env: str) -> Said:
        """The command, and of the environment the variables of klamm that are given alone."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("KLAMM_")}
        command = [str(COMMAND) if words[0] != "curl" else "curl", *words[words[0] == "curl" :]]
        done = subprocess.run(
            command, env={**clean, **env}, capture_output=True, text=True, timeout=60, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def curl(self, path: str, *options: str) -> tuple[int, str]:
        """Status and body."""
        trusting = ["--cacert", self.file("ca.pem"), "-s", "-w", "\n%{http_code}"]
        said = self.run("curl", *trusting, *options, f"https://{self.at}{path}")
        body, _, status = said.out.rpartition("\n")
        return int(status), body

    def until(self, series: str) -> float:
        """The value of a series."""
        _, metrics = self.curl("/metrics", "-H", f"Authorization: Bearer {TOKEN}")
        (line,) = [line for line in metrics.splitlines() if line.startswith(series)]
        return float(line.split()[-1])

    def log(self, kind: str) -> list[dict[str, str]]:
        lines = [json.loads(line) for line in self.process.log.read_text().splitlines() if line[:1] == "{"]
        return [line for line in lines if line["event"] == kind]


@pytest.fixture(scope="module")
def desk(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("admin-tls")
    certificates.make(folder, ["127.0.0.1", "localhost"])
    certificates.of_client(folder, "/O=Example/CN=ops", "ops")
    certificates.of_client(folder, "/O=Example/CN=viewer", "viewer")
    (folder / "other").mkdir()
    certificates.make(folder / "other", ["127.0.0.1"], "another authority")
    (folder / "token").write_text(TOKEN + "\n")
    (folder / "read-only-token").write_text(READ_ONLY + "\n")
    at, first = f"127.0.0.1:{free_ports()}", free_block("127.0.0.1")
    (folder / "klamm.yaml").write_text(
        f"""
clusters:
  - bootstrap: {kafka.bootstrap()}
    listen: 127.0.0.1:{first}-{first + 99}
admin:
  listen: {at}
  tls: {{cert: broker.pem, ca: ca.pem}}
  token_file: token
  read_only_token_file: read-only-token
  principals:
    User:CN=ops,O=Example: full
    User:CN=viewer,O=Example: read_only
log: {{format: json}}
"""
    )
    process = Process([str(COMMAND), "run", "--config", str(folder / "klamm.yaml")], folder / "log")
    try:
        it = Desk(process, at, folder)
        wait_for(
            lambda: (
                f"admin API: https://{at}/" in process.log.read_text()
                or f"metrics and health: https://{at}/" in process.log.read_text()
            ),
            "klamm",
            [process],
        )
        yield it
        assert TOKEN not in process.log.read_text()
        assert READ_ONLY not in process.log.read_text()
    finally:
        process.stop()


def test_curl_reaches_it_with_a_token_and_with_a_certificate(desk: Desk) -> None:
    bearer = ("-H", f"Authorization: Bearer {TOKEN}")
    assert desk.curl("/v1/rules")[0] == 401
    assert desk.curl("/v1/rules", *bearer) == (200, "[]")
    assert desk.curl("/v1/rules", "--cert", desk.file("viewer.pem")) == (200, "[]")
    post = ("-H", "Content-Type: application/json", "-d", RULE)
    viewer, ops = ("--cert", desk.file("viewer.pem")), ("--cert", desk.file("ops.pem"))
    status, problem = desk.curl("/v1/rules", *viewer, *post)
    assert (status, json.loads(problem)["error"][:42]) == (403, "the User:CN=viewer,O=Example may only read")
    status, made = desk.curl("/v1/rules", *ops, *post)
    assert (status, json.loads(made)["made_by"].rpartition(" (")[2]) == (
        201,
        "User:CN=ops,O=Example, 127.0.0.1)",
    )
    assert desk.curl(f"/v1/rules/{json.loads(made)['name']}", *bearer, "-X", "DELETE")[0] == 204


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_a_probe_without_credentials_and_without_trust_is_answered(desk: Desk, path: str) -> None:
    assert desk.curl(path, "--insecure")[0] == 200


@pytest.mark.parametrize(("version", "reached"), [("1.1", False), ("1.2", True), ("1.3", True)])
def test_curl_speaks_tls_1_2_and_newer(desk: Desk, version: str, reached: bool) -> None:
    only = [f"--tlsv{version}", "--tls-max", version, "--ciphers", "DEFAULT@SECLEVEL=0"]
    assert (desk.curl("/healthz", *only)[0] == 200) is reached


def test_the_commands_take_https_and_credentials_as_options_and_from_the_environment(desk: Desk) -> None:
    options = ["--admin", f"https://{desk.at}", "--admin-ca", desk.file("ca.pem")]
    token = ["--token-file", desk.file("token")]
    assert desk.run("rules", "list", *options, *token)[:2] == (0, "no rules\n")
    assert desk.run("connections", *options, *token).out == "no client is connected\n"
    made = desk.run(
        "inject", "Produce", "NOT_LEADER", "--follow", "0", *options, "--admin-cert", desk.file("ops.pem")
    )
    assert made.code == 0, made.err
    env = {
        "KLAMM_ADMIN": desk.at,
        "KLAMM_ADMIN_CA": desk.file("ca.pem"),
        "KLAMM_ADMIN_CERT": desk.file("ops.crt"),
        "KLAMM_ADMIN_KEY": desk.file("ops.key"),
    }
    assert desk.run("rules", "off", "--all", **env).code == 0
    env = {
        "KLAMM_ADMIN": f"https://{desk.at}",
        "KLAMM_ADMIN_CA": desk.file("ca.pem"),
        "KLAMM_TOKEN": READ_ONLY,
    }
    assert desk.run("rules", "list", **env).code == 0
    no = desk.run("down", "--broker", "1", **env)
    assert (no.code, no.err[:44]) == (2, "klamm: the read-only token may only read: th")
    rules = desk.folder / "rules.yaml"
    rules.write_text("rules: [{api: Produce, delay: 1ms, broker: 99}]\n")
    checked = desk.run("rules", "check", str(rules), *options, *token)
    assert "99" in checked.out + checked.err


def test_mistakes_of_callers_are_explained(desk: Desk) -> None:
    trusting = {"KLAMM_ADMIN": f"https://{desk.at}", "KLAMM_ADMIN_CA": desk.file("ca.pem")}
    said = desk.run("rules", "list", **trusting)
    assert said.code == 2
    assert "the token is missing or wrong" in said.err
    assert (
        "--token-file FILE, or show a client certificate; klamm's commands take --admin-cert FILE" in said.err
    )
    said = desk.run("rules", "list", **{**trusting, "KLAMM_ADMIN_CA": desk.file("other/ca.pem")})
    assert (said.code, "name its authority with --admin-ca FILE" in said.err) == (1, True)
    said = desk.run("rules", "list", KLAMM_ADMIN=f"https://{desk.at}")
    assert (said.code, "name its authority with --admin-ca FILE" in said.err) == (1, True)
    said = desk.run("rules", "list", KLAMM_ADMIN=desk.at, KLAMM_TOKEN=TOKEN)
    assert said == (2, "", "klamm: this port speaks TLS: write https:// before its address\n")
    said = desk.run("rules", "list", **{**trusting, "KLAMM_ADMIN_CA": desk.file("token")})
    assert (said.code, said.err) == (2, f"klamm: no certificate is in {desk.file('token')}, in PEM\n")
    said = desk.run("rules", "list", **{**trusting, "KLAMM_ADMIN_CA": desk.file("nothing.pem")})
    assert (said.code, said.err) == (2, f"klamm: {desk.file('nothing.pem')}: No such file or directory\n")
    wait_for(lambda: desk.log("admin_without_tls"), "the log", [desk.process])
    wait_for(lambda: desk.log("admin_tls_failed"), "the log", [desk.process])


def test_a_new_certificate_and_a_new_token_are_taken_while_klamm_runs(desk: Desk) -> None:
    (desk.folder / "read-only-token").write_text("the next token\n")
    wait_for(lambda: desk.log("token_loaded"), "the new token", [desk.process])
    assert desk.curl("/v1/rules", "-H", f"Authorization: Bearer {READ_ONLY}")[0] == 401
    assert desk.curl("/v1/rules", "-H", "Authorization: Bearer the next token")[0] == 200
    series = 'klamm_certificate_valid_until_timestamp_seconds{cluster="",shown_to="callers"}'
    in_days = (desk.until(series) - time.time()) / 86400
    assert 59 < in_days < 61
    for name in ("ca.pem", "ca.key", "broker.pem"):
        (desk.folder / name).write_bytes((desk.folder / "other" / name).read_bytes())
    wait_for(lambda: desk.log("tls_loaded"), "the new certificate", [desk.process])
    assert desk.curl("/v1/rules", "-H", "Authorization: Bearer the next token")[0] == 200
    assert desk.curl("/v1/rules", "--cert", desk.file("ops.pem"))[0] != 200
