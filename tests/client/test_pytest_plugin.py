"""The pytest plugin, as people use it: pytest runs in a process of its own, and its output is read."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.client.mock_cluster import mock_cluster

pytest_plugins = ["pytester"]

SHOP = '''
from confluent_kafka import Producer

def order(bootstrap, client_id="shop", timeout_ms=8000):
    """One record, delivered or not: the error's name or None."""
    outcome = []
    client = Producer({
        "bootstrap.servers": bootstrap, "client.id": client_id, "message.timeout.ms": timeout_ms,
        "log_level": 0,
    })
    client.produce("orders", b"one", on_delivery=lambda error, _: outcome.append(error and error.name()))
    client.flush(20)
    return outcome[0]
'''
NO_OTHERS = ("-p", "no:schemathesis", "-p", "no:cacheprovider")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with mock_cluster() as bootstrap:
        yield bootstrap


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with tests of somebody's shop."""
    monkeypatch.delenv("KLAMM_BOOTSTRAP", raising=False)
    pytester.makepyfile(shop=SHOP)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\npythonpath = .\n")
    return pytester


def test_a_failed_test_shows_the_last_exchanges_and_the_rules_that_fired(
    project: pytest.Pytester, cluster: str
) -> None:
    project.makepyfile(
        """
        from shop import order

        def test_orders_arrive(klamm):
            klamm.delay("Fetch", "1s", name="slow-fetch")
            with klamm.inject("Produce", "TOPIC_AUTHORIZATION_FAILED", name="forbidden"):
                assert order(klamm.bootstrap) is None

        def test_that_passes(klamm):
            assert order(klamm.bootstrap) is None
        """
    )
    result = project.runpytest_subprocess("--klamm-bootstrap", cluster, *NO_OTHERS)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*assert 'TOPIC_AUTHORIZATION_FAILED' is None",
            "-*- klamm -*",
            "klamm 127.0.0.1:* in front of *, admin API http://127.0.0.1:*",
            "rules that fired:",
            "  forbidden: 1 hits of 1 matches, {*api: Produce*}",
            "rules that did not fire:",
            "  slow-fetch: 0 hits of 0 matches, *",
            "last * of * exchanges:",
            "  *Metadata *shop -> broker *orders*ok*",
            "  *Produce *shop -> broker *orders[[]*]*TOPIC_AUTHORIZATION_FAILED x1*answered by klamm",
        ]
    )
    assert result.stdout.str().count("rules that fired") == 1


def test_no_rule_survives_its_test(project: pytest.Pytester, cluster: str) -> None:
    project.makepyfile(
        """
        import pytest
        from shop import order

        def test_with_a_rule_to_its_end(klamm):
            klamm.inject("Produce", "TOPIC_AUTHORIZATION_FAILED")
            klamm.delay("Metadata", "1ms")
            assert order(klamm.bootstrap) == "TOPIC_AUTHORIZATION_FAILED"

        def test_that_stops_in_a_block(klamm):
            with klamm.down(broker=1), klamm.rules({"api": "Produce", "drop": True}):
                pytest.skip("not now")

        def test_without_any(klamm):
            assert klamm.api.rules() == []
            assert klamm.exchanges() == []
            assert order(klamm.bootstrap) is None
        """
    )
    result = project.runpytest_subprocess("--klamm-bootstrap", cluster, *NO_OTHERS)
    result.assert_outcomes(passed=2, skipped=1)


def test_without_a_cluster_the_fixture_says_where_to_name_one(project: pytest.Pytester) -> None:
    project.makepyfile("def test_any(klamm): ...")
    result = project.runpytest_subprocess(*NO_OTHERS)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*--klamm-bootstrap HOST:PORT*KLAMM_BOOTSTRAP*kafka_bootstrap*"])


def test_a_cluster_that_is_not_there_is_told_with_what_klamm_said(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import klamm.client.process
        klamm.client.process.READY_S = 20
        def test_any(klamm): ...
        """
    )
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else gets the port
        nowhere = f"127.0.0.1:{silent.getsockname()[1]}"
        result = project.runpytest_subprocess("--klamm-bootstrap", nowhere, *NO_OTHERS)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [f"klamm does not reach the cluster at {nowhere} within 20 s:", f"*{nowhere} refuses*"]
    )


def test_the_cluster_comes_from_the_environment_too(
    project: pytest.Pytester, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KLAMM_BOOTSTRAP", cluster)
    project.makepyfile(f"def test_any(klamm): assert klamm.process.cluster == {cluster!r}")
    project.runpytest_subprocess(*NO_OTHERS).assert_outcomes(passed=1)


def test_the_cluster_may_be_a_fixture_of_any_scope_with_options_for_klamm(
    project: pytest.Pytester, cluster: str
) -> None:
    project.makepyfile(
        f"""
        import pytest
        from shop import order

        @pytest.fixture(params=[1, 2])
        def kafka_bootstrap(request):
            return {cluster!r}.split(",")[request.param]

        @pytest.fixture(scope="module")
        def klamm_options():
            return ["--metering", "header"]

        def test_orders_arrive(klamm, kafka_bootstrap):
            assert klamm.process.cluster == kafka_bootstrap
            assert klamm.api.config()["metrics"]["level"] == "header"
            assert order(klamm.bootstrap) is None
        """
    )
    options = ("--klamm-bootstrap", "nowhere.invalid:1")  # the fixture goes before it
    project.runpytest_subprocess(*options, *NO_OTHERS).assert_outcomes(passed=2)


@pytest.mark.parametrize(("options", "seed"), [((), 0), (("--klamm-seed", "7"), 7)])
def test_the_seed_decides_chances_and_is_0_where_nothing_is_said(
    project: pytest.Pytester,
    cluster: str,
    options: tuple[str, ...],
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KLAMM_BOOTSTRAP", "nowhere.invalid:1")  # the option goes before it
    project.makepyfile(
        f"""
        from pathlib import Path

        def test_any(klamm):
            assert klamm.process.log.with_name("rules.yaml").read_text() == "seed: {seed}\\nrules: []\\n"
            assert "seed {seed}" in klamm.process.log_tail()
        """
    )
    result = project.runpytest_subprocess("--klamm-bootstrap", cluster, *options, *NO_OTHERS)
    result.assert_outcomes(passed=1)


def test_workers_of_xdist_have_a_klamm_each(project: pytest.Pytester, cluster: str) -> None:
    project.makepyfile(
        """
        import os, pytest
        from shop import order

        @pytest.mark.parametrize("n", range(6))
        def test_orders(klamm, n):
            with open(os.environ["SEEN"], "a") as seen:
                seen.write(f"{os.environ['PYTEST_XDIST_WORKER']} {klamm.bootstrap}\\n")
            with klamm.inject("Produce", "NOT_LEADER_OR_FOLLOWER", times=1) as fault:
                assert order(klamm.bootstrap) is None
            assert fault.hits == 1

        def test_that_fails(klamm):
            assert order(klamm.bootstrap) == "any"
        """
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEN", str(project.path / "seen"))
        result = project.runpytest_subprocess("-n", "2", "--klamm-bootstrap", cluster, *NO_OTHERS)
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["last * of * exchanges:", "  *Produce *shop -> broker *"])
    seen = {tuple(line.split()) for line in (project.path / "seen").read_text().splitlines()}
    assert sorted(worker for worker, _ in seen) == ["gw0", "gw1"]
    assert len({bootstrap for _, bootstrap in seen}) == 2


def test_a_test_of_pytest_asyncio_waits_while_its_loop_goes_on(
    project: pytest.Pytester, cluster: str
) -> None:
    project.makepyfile(
        """
        import asyncio, pytest
        from aiokafka import AIOKafkaProducer

        @pytest.mark.asyncio
        async def test_orders_arrive(klamm):
            fault = klamm.inject("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
            async with AIOKafkaProducer(bootstrap_servers=klamm.bootstrap, client_id="aio") as producer:
                sent = asyncio.create_task(producer.send_and_wait("orders", b"one"))
                found = await klamm.wait_for_async("Produce", client_id="aio", error="NOT_LEADER*", count=2)
                await sent
            assert len(found) == fault.hits == 2

        @pytest.mark.asyncio
        async def test_that_waits_in_vain(klamm):
            await klamm.wait_for_async("Fetch", timeout_s=0.2)
        """
    )
    result = project.runpytest_subprocess("--klamm-bootstrap", cluster, *NO_OTHERS)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["E*AssertionError: 0 of 1 exchanges of api Fetch within 0.2 s; seen: nothing"]
    )


def test_a_klamm_that_died_is_told_of_and_started_anew(project: pytest.Pytester, cluster: str) -> None:
    project.makepyfile(
        """
        from shop import order

        def test_that_loses_it(klamm):
            klamm.process.child.kill()
            klamm.process.child.wait()
            assert False

        def test_that_needs_it(klamm):
            assert order(klamm.bootstrap) is None
        """
    )
    result = project.runpytest_subprocess("--klamm-bootstrap", cluster, *NO_OTHERS)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["klamm ended with exit code -9:*"])


def test_no_klamm_outlives_a_session_that_is_killed(project: pytest.Pytester, cluster: str) -> None:
    project.makepyfile(
        """
        import os, signal

        def test_that_ends_all(klamm):
            print("klamm is", klamm.process.child.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    result = project.runpytest_subprocess("-s", "--klamm-bootstrap", cluster, *NO_OTHERS)
    assert result.ret == -9
    found = re.search(r"klamm is (\d+)", result.stdout.str())
    assert found is not None
    ended = subprocess.run(
        ["timeout", "10", "tail", f"--pid={found[1]}", "-f", "/dev/null"], check=False, timeout=20
    )
    assert ended.returncode == 0


def test_unittest_and_scripts_have_the_same_as_a_context(project: pytest.Pytester, cluster: str) -> None:
    project.makepyfile(
        test_shop=f"""
        import unittest
        from klamm.client.front import in_front_of
        from shop import order

        class Orders(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                cls.klamm = cls.enterClassContext(in_front_of({cluster!r}))

            def setUp(self):
                self.klamm.begin()

            def test_a_leader_that_moves(self):
                with self.klamm.inject("Produce", "NOT_LEADER_OR_FOLLOWER", times=2) as fault:
                    self.assertIsNone(order(self.klamm.bootstrap))
                self.assertEqual(fault.hits, 2)

            def test_nothing_else(self):
                self.assertEqual(self.klamm.api.rules(), [])
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "unittest", "-v", "test_shop"],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Ran 2 tests" in done.stderr


def test_a_session_that_does_not_use_it_hardly_pays_for_it() -> None:
    plugin = "klamm.client.pytest_plugin"
    code = f"import pytest, sys; old = set(sys.modules); import {plugin}; print(*set(sys.modules) - old)"
    costs = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True
        )
        (line,) = (line for line in done.stderr.splitlines() if line.endswith(f" {plugin}"))
        costs.append(int(line.split("|")[1]) / 1000)
    assert set(done.stdout.split()) <= {"klamm", "klamm.client", plugin}
    assert min(costs) < 30  # ms
