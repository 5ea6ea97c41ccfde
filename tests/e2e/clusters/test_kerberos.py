"""klamm authenticates itself with Kerberos, to brokers that are known by the names that they advertise."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.brokers import kerberos
from tests.brokers.kerberos import REALM, Kdc
from tests.brokers.kraft import Cluster, kraft_cluster
from tests.brokers.processes import Process, wait_for
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.clusters.test_own_sessions import COUNTS, ONE, SESSION_MS, open_now, renewed
from tests.e2e.klamm_process import klamm_in_front_of

pytestmark = pytest.mark.brokers

LISTENER, HOST = "SASL_PLAINTEXT", "kafka-1.invalid"


class Realm(NamedTuple):
    kafka: Cluster
    kdc: Kdc
    keytab: Path


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with kerberos.kdc(tmp_path_factory.mktemp("kdc")) as kdc:
        settings = {
            **dict.fromkeys(ONE, "1"),
            "connections.max.reauth.ms": str(SESSION_MS),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,GSSAPI",
            **kerberos.broker_settings(LISTENER, [HOST], kdc),
        }
        jvm = [f"-Djava.security.krb5.conf={kdc.config}"]
        folder, listeners = tmp_path_factory.mktemp("kerberos"), ("PLAINTEXT", LISTENER)
        with kraft_cluster(
            folder, (1,), listeners, settings, unreachable=[LISTENER], jvm_options=jvm
        ) as cluster:
            yield Realm(cluster, kdc, kdc.keytab("klamm"))


def written(realm: Realm, folder: Path, sasl: str) -> tuple[str, tuple[str, str]]:
    """The cluster's address by its name, and options of klamm."""
    port = realm.kafka.address(1, LISTENER)[1]
    address, file = f"{HOST}:{port}", folder / "klamm.yaml"
    cluster = f"bootstrap: ['{address}'], map: {{'{address}': '127.0.0.1:{port}'}}, sasl: {{{sasl}}}"
    file.write_text(f"clusters: [{{{cluster}}}]\n")
    return address, ("--config", str(file))


@pytest.mark.parametrize(("client", "way"), [("librdkafka", "keytab"), ("java", "ticket")])
def test_klamm_authenticates_itself_with_kerberos_again_and_again(
    client: str, way: str, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, count = f"kerberos-{way}", COUNTS[client]
    topics.create(realm.kafka.bootstrap(), topic, [[1]] * 3)
    for name, value in realm.kdc.environment.items():
        monkeypatch.setenv(name, value)
    sasl = "mechanism: GSSAPI"
    if way == "keytab":
        sasl += f", principal: klamm@{REALM}, keytab: {realm.keytab}"
    else:
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/ccache")
        command = ["kinit", "-k", "-t", str(realm.keytab), f"klamm@{REALM}"]
        subprocess.run(command, check=True, timeout=60)
    address, options = written(realm, tmp_path, sasl)
    log = tmp_path / "klamm.log"
    with klamm_in_front_of(address, "127.0.0.1", log, *options) as klamm:
        consume = {"do": "consume", "topic": topic, "count": count, "group": topic}
        produce = {"do": "produce", "topic": topic, "count": count, "per_s": 30}
        running = [
            Process(programs.command(client, klamm.bootstrap, action), tmp_path / f"{action['do']}.log")
            for action in (consume, produce)
        ]
        wait_for(lambda: renewed(klamm) > len(open_now(klamm)) > 0, "sessions", [klamm.process])
        wait_for(lambda: not any(one.running for one in running), "the clients' end", timeout_s=90)
        [consumed], [produced] = (programs.results(one.log.read_text()) for one in running)
        assert (produced["acknowledged"], produced["failed"]) == (count, [])
        assert consumed["digest"] == records.digest(records.expected(topic, "seed", range(count)))
        assert {row["reason"] for row in klamm.counters()["closed"]} == {"closed by client"}


OWN = "keytab: {keytab}, principal: klamm@{realm}"
MISTAKES = {
    "service": (f"{OWN}, service_name: other", "not found in Kerberos database: look at service_name"),
    "principal": ("keytab: {keytab}, principal: nobody@{realm}", "the keytab has no key of the principal"),
    "no ticket": (
        "service_name: kafka",
        "name a keytab as clusters[].sasl.keytab, or get a ticket with kinit",
    ),
    "no kdc": (OWN, "look at kdc in /etc/krb5.conf"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told(case: str, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, says = MISTAKES[case]
    for name, value in realm.kdc.environment.items():
        monkeypatch.setenv(name, value)
    if case == "no kdc":
        broken = realm.kdc.config.read_text().replace(f":{realm.kdc.port}", ":1")
        (tmp_path / "krb5.conf").write_text(broken)
        monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    own = settings.format(keytab=realm.keytab, realm=REALM)
    address, options = written(realm, tmp_path, f"mechanism: GSSAPI, {own}")
    log = tmp_path / "klamm.log"
    with klamm_in_front_of(address, "127.0.0.1", log, *options, ready=False) as klamm:
        wait_for(lambda: "unreachable" in log.read_text(), "a line", [klamm.process])
    text = log.read_text()
    assert says in text
    key = subprocess.check_output(["base64", "-w0", str(realm.keytab)])
    assert key.decode() not in text
