"""Credentials of klamm that are incomplete, twice there, or of another mechanism."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.cli.running import sasl_faults
from klamm.cli.running.config_file import load
from klamm.proxy.config import Config
from klamm.settings.extras import installing
from klamm.settings.mistakes import ConfigError
from tests.fakes import tls

OAUTH = "mechanism: OAUTHBEARER"
SERVER = f"{OAUTH}, token_endpoint_url: 'https://idp/token'"


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PASSWORD", "SECRET"):
        monkeypatch.setenv(name, "x")


def written(folder: Path, sasl: str) -> Config:
    for name in ("secret", "other"):
        (folder / name).write_text("x")
    tls.of_days(folder, (-1, 2))
    (folder / "klamm.yaml").write_text(f"clusters: [{{bootstrap: [a:1], sasl: {{{sasl}}}}}]\n")
    return load(str(folder / "klamm.yaml"))


@pytest.mark.parametrize(
    "sasl",
    [
        "mechanism: PLAIN, username: alice, password_file: secret",
        "mechanism: SCRAM-SHA-256, username: alice, password_env: PASSWORD",
        f"{OAUTH}, token_file: secret, extensions: {{logicalCluster: lkc-1}}",
        f"{OAUTH}, token_command: [gcloud, auth, print-access-token], token_timeout_s: 30s",
        f"{SERVER}, client_id: klamm, client_secret_file: secret, scope: kafka, token_ca: broker.pem",
        f"{SERVER}, client_id: klamm, client_secret_env: SECRET",
        "mechanism: AWS_MSK_IAM",
        "mechanism: AWS_MSK_IAM, aws_profile: klamm, aws_region: eu-central-1",
    ],
)
def test_complete_credentials_are_taken(tmp_path: Path, sasl: str) -> None:
    assert written(tmp_path, sasl).clusters[0].sasl is not None


@pytest.mark.parametrize(
    ("sasl", "says"),
    [
        ("mechanism: PLAIN, password_file: secret", "PLAIN needs a user: add username"),
        ("mechanism: PLAIN, username: a", "PLAIN needs a password: add password_file or password_env"),
        (
            "mechanism: PLAIN, username: a, password_file: secret, password_env: X",
            "from one place: leave out password_file or password_env",
        ),
        (
            "mechanism: PLAIN, username: a, password_file: secret, token_command: [x]",
            "token_command: is of OAUTHBEARER, and the mechanism is PLAIN: take it out",
        ),
        (OAUTH, "OAUTHBEARER needs a token: add token_file, token_command or token_endpoint_url"),
        (f"{OAUTH}, token_file: secret, token_command: [x]", "from one place: leave out token_file or"),
        (f"{OAUTH}, token_file: secret, password_env: X", "sends a token and no password: take it out"),
        (f"{OAUTH}, token_file: secret, client_id: x", "means nothing without token_endpoint_url"),
        (
            f"{OAUTH}, token_command: gcloud auth token",
            "write the program and its arguments as [gcloud, auth,",
        ),
        (f"{SERVER}, client_secret_file: secret", "has to know who asks: add client_id"),
        (f"{SERVER}, client_id: x", "asks for a secret: add client_secret_file or client_secret_env"),
        ("mechanism: AWS_MSK_IAM, username: a", "means nothing with AWS_MSK_IAM: take it out"),
        ("mechanism: GSSAPI, keytab: secret", "add principal, such as klamm@EXAMPLE.COM"),
        ("mechanism: GSSAPI, aws_profile: a", "is of AWS_MSK_IAM, and the mechanism is GSSAPI: take it out"),
        (f"{OAUTH}, token_file: secret, keytab: other", "is of GSSAPI, and the mechanism is OAUTHBEARER"),
        (f"{OAUTH}, token_endpoint_url: idp.example.com", "write it as https://HOST/PATH"),
        (f"{OAUTH}, token_endpoint_url: 'https://me:pass@idp/token'", "has a user in it"),
        (f"{OAUTH}, token_endpoint_url: 'https://[::1/token'", "token_endpoint_url"),
    ],
)
def test_a_mistake_is_told_with_what_to_write(tmp_path: Path, sasl: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        written(tmp_path, sasl)
    assert says in str(caught.value)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(("mechanism", "extra"), [("GSSAPI", "gssapi"), ("AWS_MSK_IAM", "aws")])
def test_a_library_that_is_not_installed_is_named(
    tmp_path: Path, mechanism: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sasl_faults, "find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        written(tmp_path, f"mechanism: {mechanism}")
    assert installing(extra) in str(caught.value)
