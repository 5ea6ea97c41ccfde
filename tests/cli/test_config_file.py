"""klamm.yaml: what is read, and what is said of every mistake."""

from pathlib import Path

import pytest

from klamm.cli.running.config_file import load
from klamm.proxy.config import Admin, Cluster, Config, Limits, ListenSasl, Log, Metrics, Tls, Transparent
from klamm.proxy.config_types import Address, InputFile, Listen, Principal, Seconds, Text
from klamm.settings.mistakes import ConfigError
from tests.fakes import named_files, tls


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a token, and a certificate with its key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "secret")
    (tmp_path / "token").write_text("secret")
    tls.of_days(tmp_path, (-1, 2))
    return tmp_path


def config_of(folder: Path, text: str) -> Config:
    (folder / "klamm.yaml").write_text(text)
    return load("klamm.yaml")


def mistakes_of(folder: Path, text: str | bytes) -> list[str]:
    (folder / "klamm.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as caught:
        load("klamm.yaml")
    return str(caught.value).split("\n")


def test_a_file_carries_everything(folder: Path) -> None:
    text = """
clusters:
  - name: orders
    bootstrap: kafka-1:9092, kafka-2:9092
    listen: 0.0.0.0:20000-20050
    advertise: klamm.example.com
    map: {kafka-1:9092: 10.0.0.1:9092, "[fd00::1]:9092": "[::1]:9092"}
    ports: {1001: 20050}
    tls: {ca: broker.pem, server_name: kafka, verify: no}
    allow_unknown_apis: yes
    connect_timeout_s: 500ms
  - bootstrap: ["[::1]:9092"]
    listen: "[::1]:21000-21050"
    tls: true
admin: none
log: {apis: [produce, OFFSETS], format: json, file: klamm.log}
metrics: {level: header, topics: 0, clients: 7, listen: "0.0.0.0:9090"}
limits: {frame_bytes: 100MB, held_frame_bytes: 65536, connections: 99}
"""
    orders = Cluster(
        bootstrap=(Address("kafka-1", 9092), Address("kafka-2", 9092)),
        name="orders",
        listen=Listen("0.0.0.0", 20000, 20050),
        advertise="klamm.example.com",
        map={
            Address("kafka-1", 9092): Address("10.0.0.1", 9092),
            Address("fd00::1", 9092): Address("::1", 9092),
        },
        ports={1001: 20050},
        tls=Tls(ca="broker.pem", server_name="kafka", verify=False),
        allow_unknown_apis=True,
        connect_timeout_s=0.5,
    )
    other = Cluster((Address("::1", 9092),), listen=Listen("::1", 21000, 21050), tls=Tls())
    assert config_of(folder, text) == Config(
        clusters=(orders, other),
        admin=Admin(None),
        log=Log(("Produce", "ListOffsets"), "json", "klamm.log"),
        metrics=Metrics("header", 0, 7, Address("0.0.0.0", 9090)),
        limits=Limits(100_000_000, 65536, 99),
    )


def test_what_is_left_out_has_its_default(folder: Path) -> None:
    expected = Config((Cluster((Address("kafka-1", 9092),)),))
    assert config_of(folder, "clusters: [{bootstrap: kafka-1:9092}]") == expected


@pytest.mark.parametrize("word", ["0123", "on", "'null'", "1e3", "2024-01-01", "true", "0x10", "1_000"])
def test_text_stays_text_whatever_it_looks_like(folder: Path, word: str) -> None:
    config = config_of(folder, f"clusters: [{{name: {word}, bootstrap: kafka-1:9092}}]")
    assert config.clusters[0].name == word.strip("'")


def test_free_ports_are_no_range_that_a_broker_could_lie_in(folder: Path) -> None:
    config = config_of(folder, "clusters: [{bootstrap: 127.0.0.1:80, listen: 127.0.0.1:0}]")
    assert config.clusters[0].listen.first == 0


@pytest.mark.parametrize("nothing", ["none", "null", "~", "off", "false"])
def test_no_tls_has_many_words(folder: Path, nothing: str) -> None:
    assert config_of(folder, f"clusters: [{{bootstrap: a:1, tls: {nothing}}}]").clusters[0].tls is None


def test_relative_paths_are_seen_from_the_folder_of_the_file(folder: Path) -> None:
    (folder / "etc").mkdir()
    tls.of_days(folder / "etc", (-1, 2))
    text = "clusters: [{bootstrap: a:1, tls: {ca: broker.pem}}]\ncapture: {folder: kept}"
    (folder / "etc" / "klamm.yaml").write_text(text)
    found = load("etc/klamm.yaml")
    assert found.clusters[0].tls == Tls(ca="etc/broker.pem")
    assert (found.capture and found.capture.folder) == "etc/kept"


def test_an_alias_is_read_like_what_it_stands_for(folder: Path) -> None:
    text = (
        "clusters: [{name: a, bootstrap: &b a:1, listen: h:20000}, {name: b, bootstrap: *b, listen: h:21000}]"
    )
    assert [cluster.bootstrap for cluster in config_of(folder, text).clusters] == [(Address("a", 1),)] * 2


ONE = "clusters: [{bootstrap: a:1}]\n"  # right, so that only what follows is wrong

MISTAKES = {
    "an unknown key": (
        "clusters:\n  - bootstrap: a:1\n    lissten: b:20000\n",
        ["3:5: clusters[0].lissten: unknown key; did you mean listen?"],
    ),
    "an unknown key that is like no other": (
        ONE + "zebra: 1",
        [
            "2:1: zebra: unknown key; known are clusters, admin, log, metrics, limits, rules, capture, "
            "state, audit, traces, workers, handover",
        ],
    ),
    "a key in the wrong place": (
        ONE + "bootstrap: a:1",
        ["2:1: bootstrap: unknown key here; it belongs under clusters"],
    ),
    "a key written twice": (
        ONE + "log: {}\nlog: {}",
        ["3:1: log: written twice: the first is in line 2"],
    ),
    "two spellings of one key": (
        "clusters: [{bootstrap: a:1, ports: {1: 20001, 01: 20002}}]",
        ["1:47: clusters[0].ports.01: written twice"],
    ),
    "a missing key": (
        "clusters:\n  - name: orders\n",
        ["2:5: clusters[0]: needs the key bootstrap, a list of HOST:PORT"],
    ),
    "a key that is no word": (ONE + "[a]: 1", ["2:1: a key must be a word, not a list"]),
    "a mapping instead of a list": (
        "clusters:\n  bootstrap: a:1",
        ["2:3: clusters: must be a list: start each entry with '- '"],
    ),
    "text instead of a mapping": (
        ONE + "metrics: full",
        ["2:10: metrics: must be a mapping with level, topics, clients, listen, expire_s, not one value"],
    ),
    "a list instead of text": (
        "clusters: [{bootstrap: a:1, listen: [b:20000]}]",
        ["1:37: clusters[0].listen: must be HOST:FIRST[-LAST], not a list"],
    ),
    "text instead of a mapping of addresses": (
        "clusters: [{bootstrap: a:1, map: b}]",
        ["1:34: clusters[0].map: must be a mapping of HOST:PORT: HOST:PORT, not one value"],
    ),
    "no value": (
        "clusters: [{bootstrap: a:1}]\nmetrics: {topics: }",
        ["2:18: metrics.topics: has no value: give it a whole number, or leave it out"],
    ),
    "an empty section": (
        ONE + "log:\n",
        ["2:5: log: is empty: write {} for its defaults, or leave it out"],
    ),
    "a word that is none of a few": (
        ONE + "log: {format: jsn}",
        ["2:15: log.format: must be auto or json or console, not 'jsn'; did you mean json?"],
    ),
    "neither true nor false": (
        "clusters: [{bootstrap: a:1, allow_unknown_apis: ture}]",
        ["1:49: clusters[0].allow_unknown_apis: must be true or false, not 'ture'; did you mean true?"],
    ),
    "no number": (
        ONE + "metrics: {topics: many, clients: -1}",
        [
            "2:19: metrics.topics: 'many' is not a whole number from 0 on",
            "2:34: metrics.clients: '-1' is not a whole number from 0 on",
        ],
    ),
    "units": (
        "clusters: [{bootstrap: a:1, connect_timeout_s: 5 sec}]\n"
        "limits: {frame_bytes: 16mib, held_frame_bytes: big, connections: many}",
        [
            "1:48: clusters[0].connect_timeout_s: unknown unit 'sec'; known are ms, s, m, h",
            "2:23: limits.frame_bytes: unknown unit 'mib'; did you mean MiB?",
            "2:48: limits.held_frame_bytes: 'big' is not a size: write it as 16MiB or 65536",
            "2:66: limits.connections: 'many' is not a whole number",
        ],
    ),
    "nothing of something": (
        "clusters: [{bootstrap: a:1, connect_timeout_s: 0}]\nlimits: {held_frame_bytes: 0}",
        [
            "1:48: clusters[0].connect_timeout_s: must be more than 0",
            "2:28: limits.held_frame_bytes: must be more than 0",
        ],
    ),
    "an unknown API": (
        ONE + "log: {apis: [Prodcue, All, Metadta]}",
        [
            "2:14: log.apis[0]: unknown API 'Prodcue'; did you mean Produce?",
            "2:28: log.apis[2]: unknown API 'Metadta'; did you mean Metadata?",
        ],
    ),
    "addresses": (
        'clusters: [{bootstrap: [a, "::1:9", a:x, a:0, "a_!:1", 999.1.1.1:1, '
        'SASL_SSL://a:1, PLAINTEXT://a:1, ":1"]}]',
        [
            "1:25: clusters[0].bootstrap[0]: 'a' has no port: write it as kafka-1:9092",
            "1:28: clusters[0].bootstrap[1]: an IPv6 address stands in brackets here: write it as [::1]:9092",
            "1:37: clusters[0].bootstrap[2]: 'x' is not a port number",
            "1:42: clusters[0].bootstrap[3]: port 0 is outside 1-65535",
            "1:47: clusters[0].bootstrap[4]: 'a_!' is not a host name: "
            "it takes letters, digits, '-', '_' and dots",
            "1:56: clusters[0].bootstrap[5]: '999.1.1.1' is not an IP address",
            "1:69: clusters[0].bootstrap[6]: write 'a:1' without 'SASL_SSL://'; "
            "for TLS say --upstream-tls, or tls: true in the file",
            "1:85: clusters[0].bootstrap[7]: write 'a:1' without 'PLAINTEXT://'",
            "1:102: clusters[0].bootstrap[8]: no host",
        ],
    ),
    "addresses apart by semicolons": (
        "clusters: [{bootstrap: 'a:1;b:2'}]",
        ["1:25: clusters[0].bootstrap: write commas between addresses: a:1,b:2"],
    ),
    "addresses in one text": (
        "clusters: [{bootstrap: 'a:1,b , c'}]",
        [
            "1:29: clusters[0].bootstrap: 'b' has no port: write it as kafka-1:9092",
            "1:33: clusters[0].bootstrap: 'c' has no port: write it as kafka-1:9092",
        ],
    ),
    "addresses apart by blanks": (
        "clusters: [{bootstrap: 'a:1 b:2'}]",
        ["1:25: clusters[0].bootstrap: write commas between addresses: a:1,b:2"],
    ),
    "a port where there is none": (
        "clusters: [{bootstrap: a:1, advertise: 'klamm.example.com:19092'}]",
        ["1:40: clusters[0].advertise: a host without a port is due: write it as klamm.example.com"],
    ),
    "a port where a host is due": (
        "clusters: [{bootstrap: a:1, advertise: 19092}]",
        ["1:40: clusters[0].advertise: '19092' is a number: write a host name or an IP address"],
    ),
    "two ports": (
        "clusters: [{bootstrap: ['kafka:9092:9093', '10.0.0.1:9092:3']}]",
        [
            "1:25: clusters[0].bootstrap[0]: 'kafka:9092:9093' has two ports: "
            "write commas between addresses, each as kafka-1:9092",
            "1:44: clusters[0].bootstrap[1]: '10.0.0.1:9092:3' has two ports: "
            "write commas between addresses, each as kafka-1:9092",
        ],
    ),
    "an unknown mechanism": (
        "clusters: [{bootstrap: a:1, sasl: {mechanism: PLAN, username: x}, listen_sasl: {mechanisms: FOO}}]",
        [
            "1:47: clusters[0].sasl.mechanism: must be PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or "
            "OAUTHBEARER or GSSAPI or AWS_MSK_IAM, not 'PLAN'; did you mean PLAIN?",
            "1:93: clusters[0].listen_sasl.mechanisms: must be PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or "
            "OAUTHBEARER, not 'FOO'",
        ],
    ),
    "no broker": (
        "clusters: [{bootstrap: []}]",
        ["1:24: clusters[0].bootstrap: needs at least one HOST:PORT"],
    ),
    "no cluster": (
        "admin: none",
        ["1:1: clusters: no cluster: say `klamm run kafka-1:9092`, or name its bootstrap under clusters"],
    ),
    "listen ranges": (
        "clusters:\n"
        "- {name: a, bootstrap: a:1, listen: ':20000'}\n"
        "- {name: b, bootstrap: a:1, listen: h:20000-19000}\n"
        "- {name: c, bootstrap: a:1, listen: h:20000-20001}\n"
        "- {name: d, bootstrap: a:1, listen: '::1:23500'}\n"
        "- {name: e, bootstrap: a:1, listen: h:20000-20000}\n",
        [
            "2:37: clusters[0].listen: no host: write 0.0.0.0:20000 to listen on every interface",
            "3:37: clusters[1].listen: the range 20000-19000 is empty: its last port comes before its first",
            "4:37: clusters[2].listen: 20000-20001 has room for 2 ports, and needs 3 at least",
            "5:37: clusters[3].listen: an IPv6 address stands in brackets here: "
            "write it as [::1]:19092-19191",
            "6:37: clusters[4].listen: 20000-20000 has room for 1 port, and needs 3 at least",
        ],
    ),
    "the name of another cluster, and its ports": (
        "clusters:\n- {bootstrap: a:1}\n- {bootstrap: b:1}\n",
        [
            "3:3: clusters[1].listen: ports 19092-19191 meet those of cluster kafka (19092-19191): "
            "give each a range of its own, such as 127.0.0.1:19192-19291",
            "3:3: clusters[1].name: clusters[0] has the name 'kafka' already",
        ],
    ),
    "ranges of three clusters": (
        "clusters:\n"
        "- {name: a, bootstrap: '127.0.0.1:20300', listen: 127.0.0.1:20000-20099}\n"
        "- {name: b, bootstrap: b:1, listen: 0.0.0.0:20100-20199}\n"
        "- {name: c, bootstrap: c:1, listen: 127.0.0.1:20050-20099}\n"
        "- {name: d, bootstrap: d:1, listen: 127.0.0.1:20050-20149}\n"
        "admin: 127.0.0.1:20310\n",
        [
            "4:37: clusters[2].listen: ports 20050-20099 meet those of cluster a (20000-20099): "
            "give each a range of its own, such as 127.0.0.1:20200-20249",
            "5:37: clusters[3].listen: ports 20050-20149 meet those of cluster a (20000-20099): "
            "give each a range of its own, such as 127.0.0.1:20311-20410",
        ],
    ),
    "ranges at the last port": (
        "clusters:\n"
        "- {name: a, bootstrap: a:1, listen: 127.0.0.1:65500-65535}\n"
        "- {name: b, bootstrap: b:1, listen: 127.0.0.1:65530}\n"
        "admin: none\n",
        [
            "3:37: clusters[1].listen: ports 65530-65535 meet those of cluster a (65500-65535): "
            "give each a range of its own, such as 127.0.0.1:19092-19097",
        ],
    ),
    "the admin port": (
        ONE + "admin: localhost:19100",
        [
            "1:12: clusters[0].listen: ports 19092-19191 meet those of admin (19100): "
            "give each a range of its own, such as 127.0.0.1:19101-19200"
        ],
    ),
    "fixed ports": (
        "clusters:\n"
        "- {name: a, bootstrap: k:1, listen: 0.0.0.0:20000, ports: "
        "{1: 20000, 2: 20050, 3: 20050, 4: 21001, x: 5}}\n"
        "- {name: b, bootstrap: k:1, listen: 10.0.0.1:21000}\n",
        [
            "2:63: clusters[0].ports.1: port 20000 is the first of listen, which no broker has: let listen "
            "begin at another port",
            "2:83: clusters[0].ports.3: port 20050 is taken by node 2 of cluster a (20050): choose another",
            "2:93: clusters[0].ports.4: port 21001 is taken by cluster b (21000-21099): choose another, or "
            "let that range end earlier",
            "2:100: clusters[0].ports.x: 'x' is not a whole number",
        ],
    ),
    "an address for listening that clients are told": (
        "clusters: [{bootstrap: a:1, advertise: 0.0.0.0}]",
        ["1:40: clusters[0].advertise: clients cannot connect to 0.0.0.0: name this machine"],
    ),
    "klamm before itself": (
        "clusters: [{bootstrap: localhost:19095, listen: 0.0.0.0:19092}]",
        ["1:24: clusters[0].bootstrap: localhost:19095 lies in klamm's range 19092-19191; narrow --listen"],
    ),
    "files": (
        "clusters: [{bootstrap: a:1, tls: {ca: ca.pem, key: .}}]\nlog: {file: nowhere/klamm.log}",
        [
            "1:39: clusters[0].tls.ca: cannot read ca.pem: No such file or directory",
            "1:52: clusters[0].tls.key: cannot read .: Is a directory",
            "2:13: log.file: cannot write nowhere/klamm.log: there is no folder nowhere",
        ],
    ),
    "a key without a certificate": (
        "clusters: [{bootstrap: a:1, tls: {key: klamm.yaml}}]",
        ["1:40: clusters[0].tls.key: a key without a certificate: add cert"],
    ),
    "a token from two places": (
        ONE + "admin: {token_file: token, token_env: TOKEN}",
        ["2:39: admin.token_env: the token comes from one place: leave out token_file or token_env"],
    ),
    "principals without certificates": (
        ONE + 'admin: {principals: {"User:CN=ops": full}}',
        ["2:21: admin.principals: principals are those of client certificates: add admin.tls.ca"],
    ),
    "certificates without principals": (
        ONE + "admin: {tls: {cert: broker.pem, ca: broker.pem}}",
        [
            "2:37: admin.tls.ca: which role have the callers with a certificate? add admin.principals, "
            'such as {"User:CN=ops": full, "*": read_only}',
        ],
    ),
    "no principal, and no role": (
        ONE
        + "admin:\n  tls: {cert: broker.pem, ca: broker.pem}\n"
        + "  principals:\n    CN=ops: full\n    '*': all",
        [
            "5:5: admin.principals.CN=ops: 'CN=ops' is no principal: write it as User:CN=ops,O=Example, or * "
            "for each other one",
            "6:10: admin.principals.*: must be full or read_only, not 'all'",
        ],
    ),
    "limits": (
        ONE + "limits: {frame_bytes: 3GiB, held_frame_bytes: 4GiB}",
        [
            "2:23: limits.frame_bytes: Kafka's frames have at most 2147483647 bytes",
            "2:47: limits.held_frame_bytes: more than frame_bytes (3221225472)",
        ],
    ),
    "fewer bytes of frames than rules may hold": (
        ONE + "limits: {frame_bytes: 4MiB}",
        [
            "2:23: limits.frame_bytes: less than held_frame_bytes, which is 16777216 unless it is set: "
            "set that one too, to 4194304 or less"
        ],
    ),
    "a name with a space": (
        "clusters: [{name: my orders, bootstrap: a:1}]",
        ["1:19: clusters[0].name: 'my orders' is not a name: it takes letters, digits, '.', '_' and '-'"],
    ),
    "a tag": (ONE + "admin: !x none", ["2:8: admin: the tag !x means nothing here"]),
    "a tab": ("clusters:\n\t- bootstrap: a:1", ["2:1: a tab: indent with spaces"]),
    "a bracket without quotes": (
        "clusters:\n- bootstrap: [::1]:9092\n",
        ["2:15: text that starts with [ or { needs quotes"],
    ),
    "two colons in a line": (
        "log: format: json",
        ["1:12: a second ': ' in a line: check the indentation, or quote the text"],
    ),
    "a key without a colon": (
        "clusters\nadmin: none\n",
        ["2:6: a second ': ' in a line: check the indentation, or quote the text"],
    ),
    "an open quote": ("admin: 'none", ["1:13: a quote is not closed"]),
    "a star": (ONE + "log: {apis: *}", ["2:14: the text starts with *: put quotes around it"]),
    "two documents": (
        "--- {}\n--- {}\n",
        ["2:1: a second document: a file holds one, without ---"],
    ),
    "a control character": (ONE + "admin: a\x07", ["2:9: YAML allows no character U+0007"]),
    "another encoding": (ONE.encode() + b"admin: \xff", ["2:8: not UTF-8: byte 0xff"]),
    "endless nesting": ("[" * 5000, ["1:1: nested too deeply"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line_column_key_and_what_to_do(folder: Path, mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    assert mistakes_of(folder, text) == [f"klamm.yaml:{line}" for line in expected]


def test_an_empty_file_has_no_cluster(folder: Path) -> None:
    (only,) = mistakes_of(folder, "# nothing yet\n")
    reason = "no cluster: say `klamm run kafka-1:9092`, or name its bootstrap under clusters"
    assert only == f"klamm.yaml:1:1: clusters: {reason}"


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^missing\.yaml: cannot be read: No such file or directory$"):
        load("missing.yaml")


def test_the_mistakes_of_all_sections_are_reported_together_in_the_order_of_lines(folder: Path) -> None:
    text = "log: {format: x}\nclusters:\n  - {bootstrap: a}\n  - 7\nadmin: b\nadmn: c\n"
    assert [line.split(": ")[0] for line in mistakes_of(folder, text)] == [
        f"klamm.yaml:{place}" for place in ("1:15", "3:17", "4:5", "5:8", "6:1")
    ]


def test_the_networks_of_load_balancers_are_read_as_people_write_them(folder: Path) -> None:
    text = "clusters: [{bootstrap: 'k:1', proxy_protocol: {from: '10.0.0.0/8, fd00::/8,192.0.2.7,[::1]'}}]"
    [cluster] = config_of(folder, text).clusters
    assert cluster.proxy_protocol is not None
    assert cluster.proxy_protocol.from_ == ("10.0.0.0/8", "fd00::/8", "192.0.2.7/32", "::1/128")


@pytest.mark.parametrize(
    ("networks", "says"),
    [
        (
            "10.1.2.3/8",
            "clusters[0].proxy_protocol.from: 10.1.2.3/8 has bits beyond its length: write 10.0.0.0/8",
        ),
        ("balancer", "'balancer' is not a network: write it as 10.0.0.0/8 or fd00::/8"),
        ("10.0.0.0/33", "'10.0.0.0/33' is not a network"),
        ("[]", "clusters[0].proxy_protocol.from: names no network"),
    ],
)
def test_a_network_that_is_none_is_a_mistake(folder: Path, networks: str, says: str) -> None:
    text = f"clusters: [{{bootstrap: 'k:1', proxy_protocol: {{from: {networks}}}}}]"
    [mistake] = mistakes_of(folder, text)
    assert says in mistake


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("true", Transparent()),
        ("false", None),
        ("{to: [10.0.0.0/8], ports: [9092, 9093]}", Transparent(("10.0.0.0/8",), (9092, 9093))),
    ],
)
def test_transparent_is_a_word_or_a_mapping(folder: Path, written: str, found: Transparent | None) -> None:
    [cluster] = config_of(folder, f"clusters: [{{bootstrap: 'k:1', transparent: {written}}}]").clusters
    assert cluster.transparent == found


def test_addresses_for_clients_mean_nothing_where_they_keep_the_brokers(folder: Path) -> None:
    text = "clusters: [{bootstrap: 'k:1', transparent: true, advertise: klamm, ports: {1: 19095}}]"
    assert [mistake.partition("]")[2] for mistake in mistakes_of(folder, text)] == [
        f".{key}: means nothing with transparent: clients keep the brokers' addresses; take it out"
        for key in ("advertise", "ports")
    ]


def of_listen_sasl(text: str) -> str:
    return f"clusters:\n  - bootstrap: kafka-1:9092\n    listen_sasl: {{{text}}}\n"


def test_clients_authenticate_as_the_file_says(folder: Path) -> None:
    named_files.make(folder, ("users", "jwks.json"))
    text = (
        "mechanisms: [PLAIN, OAUTHBEARER], users: users, jwks: jwks.json, issuer: https://i.example.com, "
        "audience: kafka, claim: azp, allow: ['User:a-*', 'User:CN=x,O=y'], max_reauth_s: 1h"
    )
    [cluster] = config_of(folder, of_listen_sasl(text)).clusters
    assert cluster.listen_sasl == ListenSasl(
        ("PLAIN", "OAUTHBEARER"),
        InputFile("users"),
        InputFile("jwks.json"),
        issuer=Text("https://i.example.com"),
        audience=(Text("kafka"),),
        claim=Text("azp"),
        allow=(Principal("User:a-*"), Principal("User:CN=x,O=y")),
        max_reauth_s=Seconds(3600.0),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mechanisms: []", "mechanisms: names no mechanism"),
        ("mechanisms: [GSSAPI]", "GSSAPI"),
        ("mechanisms: [PLAIN]", "users: PLAIN needs users"),
        ("mechanisms: [OAUTHBEARER], issuer: i, audience: a", "jwks: OAUTHBEARER needs the keys"),
        (
            "mechanisms: [OAUTHBEARER], jwks: f, jwks_url: https://i/keys, issuer: i, audience: a",
            "add jwks or jwks_url",
        ),
        (
            "mechanisms: [OAUTHBEARER], jwks_url: i/keys, issuer: i, audience: a",
            "jwks_url: 'i/keys' is no address of a server",
        ),
        ("mechanisms: [OAUTHBEARER], jwks_url: http://i/keys, issuer: i, audience: a", "use https"),
        ("mechanisms: [OAUTHBEARER], jwks_url: https://a:b@i/, issuer: i, audience: a", "has a user in it"),
        (
            "mechanisms: [OAUTHBEARER], jwks: f, jwks_ca: f, issuer: i, audience: a",
            "jwks_ca: is for jwks_url",
        ),
        ("mechanisms: [PLAIN], users: f, jwks_url: https://i/keys", "jwks_url: is for OAUTHBEARER"),
        ("mechanisms: [OAUTHBEARER], jwks: f, audience: a", "issuer: OAUTHBEARER needs"),
        ("mechanisms: [OAUTHBEARER], jwks: f, issuer: i", "audience: OAUTHBEARER needs"),
        ("mechanisms: [PLAIN], users: f, issuer: i", "issuer: is for OAUTHBEARER"),
        (
            "mechanisms: [OAUTHBEARER], jwks: f, issuer: i, audience: a, users: f",
            "users: OAUTHBEARER has no users",
        ),
        ("mechanisms: [PLAIN], users: none-there", "cannot read"),
        ("mechanisms: [PLAIN], users: f, allow: [alice]", "allow[0]: 'alice' is no principal"),
        ("users: f", "mechanisms"),
    ],
)
def test_what_is_missing_for_the_authentication_of_clients_is_told(
    folder: Path, text: str, says: str
) -> None:
    (folder / "f").touch()
    found = mistakes_of(folder, of_listen_sasl(text))
    assert any(says in each and "listen_sasl" in each for each in found), found
