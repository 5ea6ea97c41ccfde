"""klamm with several processes: clients, metrics, rules and the admin API as with one."""

import io
import os
import signal
import ssl
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from klamm.client.failures import Refused
from klamm.client.sync import Klamm as Admin
from tests.brokers import certificates
from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, children, free_block, free_ports, wait_for
from tests.clients import programs
from tests.clients.drivers import DRIVERS
from tests.e2e import topics
from tests.e2e.conversation import Conversation
from tests.e2e.klamm_process import COMMAND, Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT, WORKERS = 600, 2
ENDED = (OSError, EOFError)  # of a connection
HEARTBEAT = ("Heartbeat", 4, {"group_id": "g", "generation_id": 1, "member_id": "m"})


@pytest.fixture(scope="module")
def klamm(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Klamm]:
    log = tmp_path_factory.mktemp("workers") / "klamm.log"
    options = ("--workers", str(WORKERS), "--state", "none")
    with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, *options) as running:
        yield running


@pytest.fixture
def admin(klamm: Klamm) -> Iterator[Admin]:
    admin = Admin(klamm.admin)
    yield admin
    admin.rules_off()


def ran(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def connections(klamm: Klamm, count: int, stack: ExitStack) -> list[Conversation]:
    """So many connections that have had an answer; the workers have them by turns."""
    found = [stack.enter_context(Conversation(klamm.address)) for _ in range(count)]
    for each in found:
        each.ask("ApiVersions", 3, {})
    return found


def ask_for_ever(conversation: Conversation) -> None:
    while True:
        conversation.ask(*HEARTBEAT)


def commands_of(client: str, bootstrap: str, topic: str) -> list[list[str]]:
    """Of a producer, and of a consumer."""
    if client == "franz-go":
        driver, told = DRIVERS[client], {"n": 10, "group": topic}
        return [driver.command(bootstrap, do, topic, **told) for do in ("produce", "consume")]
    action = {"topic": topic, "count": COUNT}
    doing = {"do": "produce", "idempotent": True}, {"do": "consume", "group": topic}
    return [programs.command(client, bootstrap, {**action, **each}) for each in doing]


@pytest.mark.parametrize("client", ["librdkafka", "java", "aiokafka", "kafkajs", "franz-go"])
def test_real_clients_produce_and_consume(client: str, kafka: Cluster, klamm: Klamm) -> None:
    topic = f"workers-{client}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    for command in commands_of(client, klamm.bootstrap, topic):
        ran(command)
    counted = klamm.counters()
    produced = [row for row in counted["topics"] if row["api"] == "Produce" and row["topic"] == topic]
    assert sum(row["requests"] for row in produced) > 0
    assert counted["workers"] == {"serving": WORKERS, "died": 0}
    assert f"klamm_workers {WORKERS}.0" in klamm.get("/metrics")


def test_connections_are_spread_and_listed_once(klamm: Klamm, admin: Admin) -> None:
    with ExitStack() as stack:
        before = {each.id for each in admin.connections()}
        ours = connections(klamm, 6, stack)
        new = [each for each in admin.connections() if each.id not in before]
        assert len(new) == len({each.id for each in new}) == 6
        port = ours[0].socket.getsockname()[1]
        mine = next(each for each in new if each.client.endswith(f":{port}"))
        admin.close_connection(mine.id)
        wait_for(lambda: mine.id not in {each.id for each in admin.connections()}, "the end of a connection")
        with pytest.raises(ENDED):
            ours[0].ask("ApiVersions", 3, {})
    with pytest.raises(Refused, match="there is no connection"):
        admin.close_connection(mine.id)


def test_a_rule_that_hits_three_times_does_so_in_all_workers_together(klamm: Klamm, admin: Admin) -> None:
    admin.add_rule({"name": "three", "api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS", "times": 3})
    with ExitStack() as stack:
        codes = [
            each.ask(*HEARTBEAT)["error_code"] for _ in range(3) for each in connections(klamm, 4, stack)
        ]
    assert codes.count(27) == 3
    rule = admin.rule("three")
    assert (rule.hits, rule.matches, rule.over) == (3, 12, True)
    admin.reset_rule("three")
    with ExitStack() as stack:
        codes = [each.ask(*HEARTBEAT)["error_code"] for each in connections(klamm, 4, stack)]
    assert codes.count(27) == 3


def test_a_rule_that_waits_for_another_sees_its_hit_in_another_worker(klamm: Klamm, admin: Admin) -> None:
    admin.add_rule({"name": "first", "api": "ListGroups", "log": True})
    admin.add_rule(
        {"name": "then", "api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS", "once_hit": "first"}
    )
    with ExitStack() as stack:
        ours = connections(klamm, 4, stack)
        assert all(each.ask(*HEARTBEAT)["error_code"] != 27 for each in ours)
        ours[0].ask("ListGroups", 4, {})
        assert [each.ask(*HEARTBEAT)["error_code"] for each in ours] == [27] * 4


def test_live_and_kept_exchanges_are_of_all_workers(klamm: Klamm, admin: Admin) -> None:
    seen: set[int] = set()
    ruled: list[list[str]] = []
    with ExitStack() as stack:
        ours = connections(klamm, 4, stack)
        admin.add_rule({"name": "late", "api": "Heartbeat", "delay": "1ms"})
        stack.callback(admin.remove_rule, "late")
        admin.exchanges(where='api == "Heartbeat"')  # from now on they are kept

        def read() -> None:
            with admin.live(where='api == "Heartbeat"', rule="la*") as lines:
                for line in lines:
                    if line.exchange is not None:
                        ruled.append(line.exchange.rules)
                        seen.add(line.exchange.connection_id)
                    if len(seen) == 4:
                        return

        reader = threading.Thread(target=read, daemon=True)
        reader.start()

        def all_seen() -> bool:
            for each in ours:
                each.ask(*HEARTBEAT)
            return not reader.is_alive()

        wait_for(all_seen, "an exchange of each connection")
        assert all(rules == ["late"] for rules in ruled)
        kept = admin.exchanges(where='api == "Heartbeat"', limit=20).exchanges
        assert seen <= {each.connection_id for each in kept if each.rules == ["late"]}
        assert [each.time for each in kept] == sorted(each.time for each in kept)
        assert admin.exchange(kept[0].id).connection_id == kept[0].connection_id


def test_paused_frames_of_all_workers_are_decided_about(klamm: Klamm, admin: Admin) -> None:
    admin.add_rule({"name": "stop", "api": "Heartbeat", "pause": "30s"})
    answers: list[int] = []
    with ExitStack() as stack:
        ours = connections(klamm, 4, stack)
        asking = [
            threading.Thread(target=lambda one=one: answers.append(one.ask(*HEARTBEAT)["error_code"]))
            for one in ours
        ]
        for each in asking:
            each.start()
        wait_for(lambda: len(admin.paused()) == 4, "four paused frames")
        assert klamm.counters()["frames_paused"] == 4
        for frame in admin.paused():
            assert admin.paused_frame(frame.id).values is not None
            admin.resolve(frame.id, "error", code="NOT_COORDINATOR")
        for each in asking:
            each.join(timeout=30)
    assert answers == [16] * 4


def test_a_capture_has_the_connections_of_all_workers(klamm: Klamm, admin: Admin, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    with ExitStack() as stack:
        before = connections(klamm, 2, stack)
        assert admin.begin_capture(str(folder)).folder == str(folder)
        for each in [*before, *connections(klamm, 2, stack)]:
            each.ask(*HEARTBEAT)
        wait_for(lambda: admin.capture().rows >= 8, "rows of four exchanges")
        wait_for(lambda: admin.capture().written_bytes > 0, "bytes on the disk")
        assert 0 < admin.capture().since < time.time()
        admin.end_capture()
    found = ran([str(COMMAND), "show", str(folder), 'api == "Heartbeat"'])
    assert found.count("Heartbeat") == 4
    sealed = {each.name for each in admin.capture_segments().segments}
    assert sealed == {path.name for path in folder.iterdir()}
    with admin.capture_archive() as pieces:
        archive = b"".join(pieces)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert {name.removeprefix("capture/") for name in tar.getnames()} == sealed


def test_a_worker_that_dies_is_replaced_and_only_its_connections_notice(
    kafka: Cluster, tmp_path: Path
) -> None:
    log = tmp_path / "klamm.log"
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  - {name: always, api: Heartbeat, error: REBALANCE_IN_PROGRESS}\n")
    options = ("--workers", "2", "--state", "none", "--rules", str(rules))
    with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, *options) as klamm, ExitStack() as stack:
        ours = connections(klamm, 6, stack)
        for each in ours:
            each.ask(*HEARTBEAT)
        before = sum(row["requests"] for row in klamm.counters()["requests"] if row["api"] == "Heartbeat")
        victim = children(klamm.process.child.pid)[0]
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: klamm.counters()["workers"] == {"serving": 2, "died": 1}, "another worker")
        gone = 0
        for each in ours:
            try:
                each.ask(*HEARTBEAT)
            except ENDED:
                gone += 1
        assert gone == 3
        again = [each.ask(*HEARTBEAT)["error_code"] for each in connections(klamm, 3, stack)]
        assert again == [27] * 3
        counted = klamm.counters()
        after = sum(row["requests"] for row in counted["requests"] if row["api"] == "Heartbeat")
        assert (before, after) == (6, 12)
        assert {"cluster": "kafka", "reason": "its worker died", "count": 3} in counted["closed"]
        assert sum(row["open"] for row in counted["connections"]) == 6
        assert len([line for line in log.read_text().splitlines() if '"worker_died"' in line]) == 1


def test_limits_of_connections_hold_for_all_workers_together(kafka: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "klamm.yaml"
    config.write_text("limits: {connections: 5}\n")
    options = ("--workers", "2", "--state", "none", "--config", str(config))
    foreseen = {"too_many_connections"}
    with (
        klamm_in_front_of(
            kafka.bootstrap(), "127.0.0.1", tmp_path / "log", *options, foreseen=foreseen
        ) as klamm,
        ExitStack() as stack,
    ):

        def all_five() -> bool:
            """The lead may not have heard yet that others have ended."""
            with ExitStack() as some:
                try:
                    connections(klamm, 5, some)
                except ENDED:
                    return False
                stack.push(some.pop_all())
            return True

        def refused() -> bool:
            """A reset may come before the connection is made for its client."""
            try:
                with Conversation(klamm.address) as sixth:
                    sixth.ask("ApiVersions", 3, {})
            except ENDED:
                return True
            return False

        wait_for(all_five, "five connections")
        wait_for(refused, "the end of the sixth connection")
        stack.pop_all().close()
        wait_for(lambda: not Admin(klamm.admin).connections(), "the ends of all connections")
        wait_for(all_five, "five connections again")


def test_a_rate_of_connections_holds_for_all_workers_together(kafka: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "klamm.yaml"
    config.write_text("limits: {connects_per_second: 2}\n")
    options = ("--workers", "2", "--state", "none", "--config", str(config))
    foreseen = {"too_many_connects"}
    with (
        klamm_in_front_of(
            kafka.bootstrap(), "127.0.0.1", tmp_path / "log", *options, foreseen=foreseen
        ) as klamm,
        ExitStack() as stack,
    ):
        began = time.time()
        assert len(connections(klamm, 8, stack)) == 8
        last = max(each.since for each in Admin(klamm.admin).connections())
        assert last - began > 2.9  # two in each second: a worker that counted by itself would let in four
        problems = klamm.counters()["problems"]
        assert sum(row["count"] for row in problems if row["kind"] == "too_many_connects") > 0
        assert '"too_many_connects"' in (tmp_path / "log").read_text()


@pytest.mark.parametrize("client", ["librdkafka", "java"])
def test_settings_change_under_a_client(client: str, kafka: Cluster, tmp_path: Path) -> None:
    config = tmp_path / "klamm.yaml"
    config.write_text("limits: {drain_s: 5s}\n")
    options = ("--workers", "2", "--state", "none", "--config", str(config))
    foreseen = {"bad_size"}
    topic = f"workers-reload-{client}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    with klamm_in_front_of(
        kafka.bootstrap(), "127.0.0.1", tmp_path / "log", *options, foreseen=foreseen
    ) as klamm:
        produce = {"do": "produce", "topic": topic, "count": 300, "per_s": 60, "idempotent": True}
        with subprocess.Popen(programs.command(client, klamm.bootstrap, produce)) as producer:
            admin, number = Admin(klamm.admin), 0
            while producer.poll() is None:
                number += 1
                config.write_text(
                    f"limits: {{frame_bytes: {number % 2 + 100}MiB, max_age_s: {number + 60}s}}\n"
                )
                assert "limits.frame_bytes" in admin.reload_config().changed
        assert producer.returncode == 0
        assert number > 3
        with ExitStack() as stack:
            config.write_text("limits: {frame_bytes: 1KiB, held_frame_bytes: 1KiB}\n")
            admin.reload_config()
            for each in connections(klamm, 4, stack):
                with pytest.raises(ENDED):
                    each.ask("Metadata", 12, {"topics": [{"name": "t" * 2000}]})


def test_a_drain_ends_the_connections_of_all_workers(kafka: Cluster, tmp_path: Path) -> None:
    options = ("--workers", "2", "--state", "none")
    with (
        klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", tmp_path / "log", *options, drains=True) as klamm,
        ExitStack() as stack,
    ):
        ours = connections(klamm, 4, stack)
        admin = Admin(klamm.admin)
        assert admin.drain().connections == 4
        for each in ours:
            with pytest.raises(ENDED):
                ask_for_ever(each)
    assert klamm.process.child.returncode == 0


def test_workers_end_with_their_lead(kafka: Cluster, tmp_path: Path) -> None:
    options = ["--workers", "2", "--state", "none", "--admin", f"127.0.0.1:{free_ports()}"]
    process = Process(
        [str(COMMAND), "run", kafka.bootstrap(), "--listen", f"127.0.0.1:{free_block()}", *options],
        tmp_path / "log",
    )
    try:
        wait_for(lambda: len(children(process.child.pid)) == 2, "two workers", [process])
        pids = children(process.child.pid)
    finally:
        process.kill()
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), "the end of the workers")


def test_a_group_that_one_worker_has_heard_of_is_known_to_the_others(klamm: Klamm, admin: Admin) -> None:
    admin.add_rule({"name": "of-group", "api": "ListGroups", "group": "told", "error": "NOT_COORDINATOR"})
    with ExitStack() as stack:
        ours = connections(klamm, 4, stack)
        ours[0].ask("Heartbeat", 4, {"group_id": "told", "generation_id": 1, "member_id": "m"})

        def known() -> bool:
            return all(each.ask("ListGroups", 4, {})["error_code"] == 16 for each in ours)

        wait_for(known, "the group in every worker")


def test_a_rate_holds_for_all_workers_together(klamm: Klamm, admin: Admin) -> None:
    admin.add_rule({"name": "slow", "api": "Heartbeat", "rate": {"requests": 1}})
    with ExitStack() as stack:
        ours = connections(klamm, 2, stack)
        waits = [each.ask(*HEARTBEAT)["throttle_time_ms"] for _ in range(6) for each in ours[:1]]
        assert waits == [0] * 6
        assert ours[1].ask(*HEARTBEAT)["throttle_time_ms"] == 0
        for _ in range(4):
            ours[0].ask(*HEARTBEAT)
        assert ours[1].ask(*HEARTBEAT)["throttle_time_ms"] > 0


NAMED = """\
  - name: {name}
    bootstrap: [{bootstrap}]
    listen: 127.0.0.1:{port}
    listen_tls: {{cert: {folder}/broker.pem}}
    names: {{bootstrap: klamm.{name}.example, nodes: "broker-$(node).{name}.example"}}
"""


def test_clusters_behind_one_port_are_told_apart_in_each_worker(kafka: Cluster, tmp_path: Path) -> None:
    certificates.make(tmp_path, ["*.orders.example", "*.billing.example"])
    config, port = tmp_path / "klamm.yaml", free_ports()
    where = {"bootstrap": kafka.bootstrap(), "port": port, "folder": tmp_path}
    clusters = "".join(NAMED.format(name=name, **where) for name in ("orders", "billing"))
    config.write_text(f"workers: 2\nstate: none\nclusters:\n{clusters}")
    admin = f"127.0.0.1:{free_ports()}"
    process = Process([str(COMMAND), "run", "--config", str(config), "--admin", admin], tmp_path / "log")
    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    try:
        klamm = Klamm(process, "127.0.0.1", port, admin)
        wait_for(klamm.ready, "klamm", [process])
        with ExitStack() as stack:
            for name in ("orders", "billing") * 2:
                expected = {f"broker-{number}.{name}.example" for number in (1, 2, 3)}
                assert _hosts(klamm, context, name, stack) == expected
            with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
                _hosts(klamm, context, "nobody", stack)
            assert {each.cluster for each in Admin(admin).connections()} == {"orders", "billing"}
    finally:
        assert process.stop() == 0, process.tail()


def _hosts(klamm: Klamm, context: ssl.SSLContext, name: str, stack: ExitStack) -> set[str]:
    """The hosts of the brokers that a client of this name is told."""
    conversation = stack.enter_context(Conversation(klamm.address))
    conversation.socket = stack.enter_context(
        context.wrap_socket(conversation.socket, server_hostname=f"klamm.{name}.example")
    )
    return {node["host"] for node in conversation.ask("Metadata", 12, {"topics": []})["brokers"]}
