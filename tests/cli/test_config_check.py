"""`klamm config check`: all mistakes of klamm.yaml and of the files that it names, with their keys."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import pytest

from klamm.cli import USAGE, main
from klamm.proxy import serve
from tests.fakes import tls

SPOILT = """\
clusters:
  - bootstrap: kafka-1:9092
    lissten: 0.0.0.0:20000
    tls: {ca: text, cert: broker.pem, key: other.pem}
    listen_tls: {cert: text, key: broker.pem}
    sasl: {mechanism: PLAIN, username: alice, password_file: empty}
    listen_sasl: {mechanisms: SCRAM-SHA-256, users: empty}
admin: {listen: 127.0.0.1:1, token_env: NO_SUCH_TOKEN, tls: {cert: broker.pem, key: locked.pem}}
rules: rules.yaml
"""
MISTAKES = [
    r"klamm.yaml:3:5: clusters[0].lissten: unknown key; did you mean listen?",
    r"klamm.yaml:4:15: clusters[0].tls.ca: no certificate is in text, in PEM",
    r"klamm.yaml:4:44: clusters[0].tls.key: the private key in other.pem is not that of the certificate in "
    "broker.pem",
    r"klamm.yaml:5:24: clusters[0].listen_tls.cert: no certificate is in text, in PEM",
    r"klamm.yaml:6:62: clusters[0].sasl.password_file: klamm's own credentials: the file empty is empty",
    r"klamm.yaml:7:53: clusters[0].listen_sasl.users: empty: no user is in it: add one with klamm users set "
    "empty NAME",
    r"klamm.yaml:8:41: admin.token_env: the environment variable NO_SUCH_TOKEN is empty",
    r"klamm.yaml:8:85: admin.tls.key: the private key in locked.pem is encrypted, and klamm takes no "
    "password: write it without one, with openssl pkey -in locked.pem -out FILE",
    r"rules.yaml:1:15: rules[0].api: unknown API 'Prodcue'; did you mean Produce?",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate with its key, files that are of no use for TLS, and rules with a mistake."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("text")
    (tmp_path / "empty").touch()
    (tmp_path / "rules.yaml").write_text("rules: [{api: Prodcue, delay: 1s}]\n")
    tls.of_days(tmp_path, (-1, 40))
    (tmp_path / "broker.pem").rename("other.pem")
    tls.of_days(tmp_path, (-1, 40))
    lock = "openssl pkcs8 -topk8 -in broker.pem -out locked.pem -passout pass:secret"
    subprocess.run(lock.split(), check=True, capture_output=True, timeout=30)
    return tmp_path


def test_all_mistakes_are_told_at_once_those_of_named_files_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "klamm.yaml").write_text(SPOILT)
    assert main(["config", "check"]) == USAGE
    assert capsys.readouterr().out.splitlines() == [*MISTAKES, "klamm.yaml: 9 mistakes"]


def test_the_start_tells_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "klamm.yaml").write_text(SPOILT)
    assert main(["run", "--config", "klamm.yaml"]) == USAGE
    errors = capsys.readouterr().err.splitlines()
    assert errors == [*MISTAKES, "klamm run: 9 mistakes, nothing was started"]


@pytest.mark.parametrize(
    ("settings", "mistakes"),
    [
        ("{cert: text}", ["cert: no certificate with its private key is in text, in PEM: if the key is in"]),
        (
            "{cert: text, key: text}",
            ["cert: no certificate is in text", "key: no private key is in text, in PEM"],
        ),
        (
            "{cert: locked.pem, key: gone}",
            ["cert: no certificate is in locked.pem", "key: cannot read gone: No such"],
        ),
        ("{cert: broker.pem, ca: other.pem}", []),
    ],
)
def test_each_file_of_tls_is_told_by_its_key(
    folder: Path, settings: str, mistakes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("tls", "listen_tls"):
        (folder / "klamm.yaml").write_text(f"clusters: [{{bootstrap: a:1, {side}: {settings}}}]\n")
        assert main(["config", "check"]) == (USAGE if mistakes else 0)
        told = capsys.readouterr().out
        for mistake in mistakes:
            assert f"clusters[0].{side}.{mistake}" in told


def test_it_says_what_klamm_would_run_and_listens_nowhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "serve", lambda *_: pytest.fail("served"))
    (folder / "rules.yaml").write_text("rules: [{api: Produce, delay: 1s}]\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (folder / "klamm.yaml").write_text(
            "clusters:\n"
            "  - {name: orders, bootstrap: 'k1:9092,k2:9092', listen: 0.0.0.0:20000-20050,\n"
            "     advertise: klamm.test, tls: true, listen_tls: {cert: broker.pem, ca: broker.pem}}\n"
            "  - {name: billing, bootstrap: '[::1]:9092', listen: 127.0.0.1:20100}\n"
            f"admin: 127.0.0.1:{port}\nrules: rules.yaml\ncapture: traffic\n"
        )
        assert main(["config", "check", "klamm.yaml", "--metrics", "127.0.0.1:9"]) == 0
    assert not (folder / "traffic").exists()
    assert capsys.readouterr().out.splitlines() == [
        "cluster orders: k1:9092,k2:9092, with TLS",
        "  clients come to 0.0.0.0:20000-20050, and are told klamm.test, with TLS and client certificates",
        "cluster billing: [::1]:9092",
        "  clients come to 127.0.0.1:20100-20199",
        f"admin API, metrics and health: 127.0.0.1:{port}",
        "metrics and health alone: 127.0.0.1:9",
        "rules: 1 from rules.yaml",
        "captured into traffic, records: blank",
        "klamm.yaml: no mistakes, ready to run",
    ]


@pytest.mark.parametrize(
    ("valid", "says"),
    [
        ((-9, -1), r"has expired at \d{4}-\d\d-\d\d \d\d:\d\d UTC: put a new one there"),
        ((-9, 3), r"expires at \d{4}-\d\d-\d\d \d\d:\d\d UTC"),
        ((2, 9), r"is valid from \d{4}-\d\d-\d\d \d\d:\d\d UTC on, which is not yet"),
    ],
)
def test_a_certificate_whose_time_is_not_now_is_a_warning(
    folder: Path, valid: tuple[int, int], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tls.of_days(folder, valid)
    (folder / "klamm.yaml").write_text("clusters: [{bootstrap: a:1, listen_tls: {cert: broker.pem}}]\n")
    assert main(["config", "check"]) == 0
    out = capsys.readouterr().out
    place = r"klamm\.yaml:1:48: clusters\[0\]\.listen_tls\.cert"
    assert re.match(rf"{place}: warning: the certificate in broker\.pem {says}\n", out)
    assert out.endswith("klamm.yaml: no mistakes, 1 warning, ready to run\n")


def test_options_are_those_of_klamm_run_and_override_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "klamm.yaml").write_text("admin: 127.0.0.1:20050\n")
    words = [
        "config",
        "check",
        "klamm.yaml",
        "a:1",
        "--listen",
        "127.0.0.1:20000",
        "--web",
        "--admin",
        "none",
    ]
    assert main(words) == USAGE
    assert capsys.readouterr().out.startswith("--web: the page asks the admin API, and there is none")
    assert main(words[:6]) == USAGE
    assert capsys.readouterr().out.startswith("--listen: ports 20000-20099 meet those of admin (20050)")
    assert main([*words[:4], "--rules", "rules.yaml"]) == USAGE
    assert capsys.readouterr().out == f"{MISTAKES[-1]}\nklamm.yaml: 1 mistake\n"


def test_a_file_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", "none.yaml"]) == USAGE
    assert capsys.readouterr().out.startswith("none.yaml: cannot be read: No such file or directory\n")
