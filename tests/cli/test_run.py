"""`klamm run`: options and file to one Config."""

import argparse
from pathlib import Path

import pytest

from klamm.cli import FAILED, USAGE, Parser, main
from klamm.cli.running import run as command
from klamm.proxy import serve
from klamm.proxy.config import (
    Admin,
    AdminTls,
    Audit,
    Cluster,
    Config,
    Log,
    Metrics,
    Rules,
    State,
    Tls,
    Transparent,
)
from klamm.proxy.config_types import AUTO, Address, Listen, Port, StateFolder
from klamm.settings.mistakes import ConfigError
from tests.fakes.tls import of_days


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    of_days(tmp_path, (-1, 2))
    (tmp_path / "one.yaml").write_text(
        "clusters: [{name: orders, bootstrap: file:9092, map: {a:1: b:1}, tls: {server_name: kafka}}]\n"
        "log: {apis: all, format: json}\n"
    )
    (tmp_path / "two.yaml").write_text(
        "clusters:\n"
        "- {name: a, bootstrap: a:1, listen: h:20000}\n"
        "- {name: b, bootstrap: b:1, listen: h:21000}\n"
    )
    (tmp_path / "none.yaml").write_text("admin: none\n")
    return tmp_path


def configured(line: str) -> Config:
    parser = Parser()
    command.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["run", *line.split()])
    assert isinstance(arguments, argparse.Namespace)
    return command.configure(arguments)


def mistakes(line: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        configured(line)
    return str(caught.value).split("\n")


def test_the_option_transparent_is_the_files_or_any_destination(folder: Path) -> None:
    (folder / "pod.yaml").write_text("clusters: [{bootstrap: a:1, transparent: {ports: 9092}}]")
    [plain] = configured("a:1 --transparent").clusters
    [written] = configured("--config pod.yaml --transparent").clusters
    [without] = configured("a:1").clusters
    assert plain.transparent == Transparent()
    assert written.transparent == Transparent(ports=(Port(9092),))
    assert without.transparent is None


def test_the_bootstrap_servers_are_all_it_needs() -> None:
    assert configured("a:1,b:2,[::1]:3") == Config(
        (Cluster((Address("a", 1), Address("b", 2), Address("::1", 3))),)
    )


def test_every_option_has_its_place() -> None:
    options = (
        "a:1 --listen 0.0.0.0:20000-20050 --advertise klamm.example.com --map x:1=y:2 --map [::1]:1=z:3 "
        "--upstream-ca broker.pem --admin none --log produce,Fetch --log-format console --metering header "
        "--metrics 0.0.0.0:9090"
    )
    cluster = Cluster(
        bootstrap=(Address("a", 1),),
        listen=Listen("0.0.0.0", 20000, 20050),
        advertise="klamm.example.com",
        map={Address("x", 1): Address("y", 2), Address("::1", 1): Address("z", 3)},
        tls=Tls(ca="broker.pem"),
    )
    metrics = Metrics("header", listen=Address("0.0.0.0", 9090))
    expected = Config((cluster,), Admin(None), Log(("Produce", "Fetch"), "console"), metrics)
    assert configured(options) == expected


def test_callers_of_the_admin_api_and_the_audit_file_come_from_options_or_the_file(folder: Path) -> None:
    for name in ("token", "reads", "other"):
        (folder / name).write_text(name)
    (folder / "key.pem").write_bytes((folder / "broker.pem").read_bytes())
    tls = AdminTls("broker.pem", "key.pem")
    options = "a:1 --admin-tls-cert broker.pem --admin-tls-key key.pem --admin-token-file token"
    expected = Admin(tls=tls, token_file="token", read_only_token_file="reads")
    assert configured(f"{options} --admin-read-only-token-file reads").admin == expected
    (folder / "a.yaml").write_text(
        "clusters: [{bootstrap: a:1}]\n"
        "admin: {tls: {cert: broker.pem}, token_file: token}\naudit: audit.log\n"
    )
    assert configured("--config a.yaml").audit == Audit("audit.log")
    found = configured("--config a.yaml --admin-tls-key key.pem --admin-token-file other --audit b.log")
    assert (found.admin, found.audit) == (Admin(tls=tls, token_file="other"), Audit("b.log"))
    assert mistakes("a:1 --admin-tls-key key.pem") == [
        "--admin-tls-key: needs klamm's certificate: add --admin-tls-cert FILE"
    ]
    assert mistakes("a:1 --audit none/audit.log") == [
        "--audit: cannot write none/audit.log: there is no folder none"
    ]


def test_rules_come_from_an_option_or_the_file(folder: Path) -> None:
    for name in ("rules.yaml", "other.yaml"):
        (folder / name).touch()
    (folder / "ruled.yaml").write_text("clusters: [{bootstrap: a:1}]\nrules: rules.yaml\n")
    assert configured("a:1").rules is None
    assert configured("a:1 --rules rules.yaml --seed 7").rules == Rules("rules.yaml", 7)
    assert configured("--config ruled.yaml").rules == Rules("rules.yaml")
    assert configured("--config ruled.yaml --seed 7 --rules other.yaml").rules == Rules("other.yaml", 7)


def test_the_folder_of_what_is_remembered_comes_from_an_option_or_the_file(folder: Path) -> None:
    (folder / "remembers.yaml").write_text("clusters: [{bootstrap: a:1}]\nstate: here\n")
    (folder / "forgets.yaml").write_text("clusters: [{bootstrap: a:1}]\nstate: {folder: none}\n")
    assert configured("a:1").state == State(AUTO)
    assert configured("a:1 --state there").state == State(StateFolder("there"))
    assert configured("a:1 --state none").state == State(None)
    assert configured("--config remembers.yaml").state == State(StateFolder("here"))
    assert configured("--config remembers.yaml --state auto").state == State(AUTO)
    assert configured("--config forgets.yaml").state == State(None)
    (folder / "here").touch()
    assert mistakes("a:1 --state here") == ["--state: cannot write into here: it is no folder"]


def test_tls_without_a_file_trusts_the_systems_certificates() -> None:
    assert configured("a:1 --upstream-tls").clusters[0].tls == Tls()


def test_options_override_the_file_and_add_to_its_map() -> None:
    config = configured("--config one.yaml --map c:1=d:1 --upstream-ca broker.pem --log Fetch")
    cluster = Cluster(
        bootstrap=(Address("file", 9092),),
        name="orders",
        map={Address("a", 1): Address("b", 1), Address("c", 1): Address("d", 1)},
        tls=Tls(ca="broker.pem", server_name="kafka"),
    )
    assert config == Config((cluster,), log=Log(("Fetch",), "json"))
    assert configured("x:1 --config one.yaml").clusters[0].bootstrap == (Address("x", 1),)


def test_none_takes_the_listener_of_the_file_away(folder: Path) -> None:
    (folder / "metrics.yaml").write_text("clusters: [{bootstrap: a:1}]\nmetrics: {listen: 0.0.0.0:9090}\n")
    assert configured("--config metrics.yaml").metrics.listen == Address("0.0.0.0", 9090)
    assert configured("--config metrics.yaml --metrics none").metrics.listen is None


def test_options_complete_a_file_without_clusters() -> None:
    assert configured("a:1 --config none.yaml") == Config((Cluster((Address("a", 1),)),), Admin(None))


def test_options_leave_a_file_of_two_clusters_alone_but_for_what_they_share() -> None:
    assert configured("--config two.yaml --admin none").admin == Admin(None)
    assert mistakes("--config two.yaml --listen h:22000 x:1") == [
        "--listen: the file has 2 clusters: set listen there, in one of them",
        "BOOTSTRAP: the file has 2 clusters: set bootstrap there, in one of them",
    ]


def test_the_mistakes_of_all_options_and_of_the_file_are_reported_together(folder: Path) -> None:
    (folder / "bad.yaml").write_text("admn: none\nclusters: 1\n")
    line = (
        "a:1,b --config bad.yaml --listen :20000 --advertise http://a --map x:1 --map x=y:1 "
        "--upstream-ca no.pem --admin [::1] --log Prodcue,Fetch --log-format jsn --metering ful"
    )
    assert mistakes(line) == [
        "--admin: '[::1]' has no port: write it as 127.0.0.1:19091",
        "--advertise: write 'a' without 'http://'",
        "--listen: no host: write 0.0.0.0:20000 to listen on every interface",
        "--log: unknown API 'Prodcue'; did you mean Produce?",
        "--log-format: must be auto or json or console, not 'jsn'; did you mean json?",
        "--map: 'x' has no port: write it as kafka-1:9092",
        "--map: 'x:1' has no '=': write it as kafka-1:9092=10.0.0.1:9092",
        "--metering: must be header or full, not 'ful'; did you mean full?",
        "--upstream-ca: cannot read no.pem: No such file or directory",
        "BOOTSTRAP: 'b' has no port: write it as kafka-1:9092",
        "bad.yaml:1:1: admn: unknown key; did you mean admin?",
        "bad.yaml:2:11: clusters: must be a list: start each entry with '- '",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "klamm run: no cluster: say `klamm run kafka-1:9092`, or name its bootstrap under clusters"),
        (
            "a:1 --listen ::1:20000",
            "--listen: an IPv6 address stands in brackets here: write it as [::1]:19092-19191",
        ),
        ("a:1 --advertise 0.0.0.0", "--advertise: clients cannot connect to 0.0.0.0: name this machine"),
        (
            "127.0.0.1:19092",
            "BOOTSTRAP: 127.0.0.1:19092 lies in klamm's range 19092-19191; move --listen",
        ),
        (
            "127.0.0.1:21401 --listen 127.0.0.1:21330",
            "BOOTSTRAP: 127.0.0.1:21401 lies in klamm's range 21330-21429; narrow --listen",
        ),
        (
            "a:1 --admin 127.0.0.1:20005 --listen 0.0.0.0:20000",
            "--listen: ports 20000-20099 meet those of admin (20005): "
            "give each a range of its own, such as 0.0.0.0:20006-20105",
        ),
        (
            "a:1 --metrics 0.0.0.0:19091",
            "--metrics: port 19091 is taken by admin (19091): choose another",
        ),
        (
            "a:1 --metrics 0.0.0.0:19100 --listen 127.0.0.1:19092",
            "--listen: ports 19092-19191 meet those of metrics (19100): "
            "give each a range of its own, such as 127.0.0.1:19101-19200",
        ),
        ("a:1 --seed 7", "--seed: there are no rules: add --rules FILE"),
        ("a:1 --rules no.yaml", "--rules: cannot read no.yaml: No such file or directory"),
        ("a:1 --config missing.yaml", "missing.yaml: cannot be read: No such file or directory"),
    ],
)
def test_what_does_not_fit_names_the_option(line: str, expected: str) -> None:
    assert mistakes(line) == [expected]


def test_a_mistake_starts_nothing_and_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "serve", lambda *_: pytest.fail("served"))
    assert main(["run", "a", "--admin", "b"]) == USAGE
    assert capsys.readouterr().err == (
        "--admin: 'b' has no port: write it as 127.0.0.1:19091\n"
        "BOOTSTRAP: 'a' has no port: write it as kafka-1:9092\n"
        "klamm run: 2 mistakes, nothing was started\n"
    )


def test_what_cannot_be_served_is_said_in_a_line_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cannot(*_: object) -> None:
        raise serve.CannotServe("port 19092 is taken")

    monkeypatch.setattr(serve, "serve", cannot)
    assert main(["run", "a:1"]) == FAILED
    assert capsys.readouterr().err == "klamm run: port 19092 is taken\n"
