"""Every route of the admin API, asked by both clients of it, while librdkafka works through klamm."""

import io
import re
import tarfile
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from klamm.captures.storage.reading import read
from klamm.client import Refused
from klamm.decoders import API
from klamm.proxy.admin import server as admin
from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e.asking import USER, asking
from tests.e2e.commands.admin_ground import PAUSED, REFUSED, RULE, Ground
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import Klamm, klamm_in_front_of
from tests.e2e.light_traffic import (
    BILLING,
    LEADER,
    PATIENCE_S,
    PROBE,
    SHOP,
    Shop,
    leader,
    probing,
    shop_behind_klamm,
)
from tests.e2e.paths import QUORUM

pytestmark = pytest.mark.brokers

OTHER = "INVALID_RECORD"
PLAIN = [("GET", path) for path in ("/", *re.findall(r"/\S+", admin.INDEX), "/v1/openapi.json")]
ROUTES = [*PLAIN, *((route.method, route.path) for route in admin.ROUTES)]


@pytest.fixture(scope="module")
def at_work(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Klamm, Shop]]:
    with shop_behind_klamm(kafka, tmp_path_factory.mktemp("admin") / "klamm.log") as running:
        yield running


@pytest.fixture(scope="module", params=["sync", "async"])
def it(
    request: pytest.FixtureRequest,
    kafka: Cluster,
    at_work: tuple[Klamm, Shop],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ground]:
    klamm, shop = at_work
    with asking(request.param, klamm.admin) as api:
        yield Ground(kafka, klamm, shop, api, tmp_path_factory.mktemp("captures"))


def index(it: Ground) -> None:
    named = set(re.findall(r"/\S+", it.get("/")))
    assert named == {path for method, path in ROUTES if method == "GET" and "{" not in path} - {"/"}


def healthy(it: Ground) -> None:
    assert it.get("/healthz") == "ok\n"


def ready(it: Ground) -> None:
    assert it.get("/readyz") == "ready\n"


def metrics(it: Ground) -> None:
    it.shop.deliveries(3)
    samples = [
        each for family in text_string_to_metric_families(it.get("/metrics")) for each in family.samples
    ]
    labels = {"cluster": "kafka", "topic": it.shop.topic, "api": "Produce"}
    (count,) = (
        each.value for each in samples if (each.name, each.labels) == ("klamm_topic_requests_total", labels)
    )
    assert count >= 3


def counters(it: Ground) -> None:
    def answered() -> int:
        rows = it.api.counters()["requests"]
        return sum(row["responses"] for row in rows if (row["api"], row["client_id"]) == ("Produce", SHOP))

    before = answered()
    it.shop.deliveries(5)
    assert answered() >= before + 5


def document(it: Ground) -> None:
    paths = it.api.openapi()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert routes == set(ROUTES) - set(PLAIN)


def rules_are_listed_with_what_the_client_met(it: Ground) -> None:
    assert it.shop.errors(4, lambda: it.refuse(times=2)) == [REFUSED, REFUSED, None, None]
    (rule,) = it.api.rules()
    assert (rule.name, rule.origin, rule.matches >= 4, rule.hits, rule.over) == (RULE, "hand", True, 2, True)
    assert rule.made_by == f"{USER} (127.0.0.1)"


def there_is_no_rule_file(it: Ground) -> None:
    rule_file = it.api.rule_file()
    assert (rule_file.file, rule_file.rules, rule_file.rejected, rule_file.mistakes) == ("", 0, None, [])


def a_rule_is_in_force_when_it_is_answered(it: Ground) -> None:
    assert it.shop.errors(3) == [None] * 3
    assert it.shop.errors(3, it.refuse) == [REFUSED] * 3
    with pytest.raises(Refused, match="did you mean NOT_LEADER_OR_FOLLOWER") as no:
        it.refuse("NOT_LEADER", "other")
    assert (no.value.status, no.value.mistakes[0].path) == (422, "error")


def rules_end_together(it: Ground) -> None:
    it.refuse()
    it.refuse(name="other", client=SHOP)
    assert it.shop.errors(3) == [REFUSED] * 3
    assert it.api.rules_off() == [RULE, "other"]
    assert it.shop.errors(3) == [None] * 3
    assert it.api.rules() == []


def a_rule_tells_its_hits(it: Ground) -> None:
    it.shop.deliveries(4, lambda: it.refuse(times=3))
    rule = it.api.rule(RULE)
    assert (rule.hits, rule.written["error"]) == (3, REFUSED)
    with pytest.raises(Refused, match="there is no rule 'refusd'; did you mean refused") as no:
        it.api.rule("refusd")
    assert no.value.status == 404


def a_rule_becomes_another(it: Ground) -> None:
    assert it.shop.errors(2, it.refuse) == [REFUSED] * 2
    written = {"api": "Produce", "topic": it.shop.topic, "error": OTHER}
    assert it.shop.errors(3, lambda: it.api.change_rule(RULE, written)) == [OTHER] * 3
    assert [(rule.name, rule.written["error"]) for rule in it.api.rules()] == [(RULE, OTHER)]


def a_rule_is_switched(it: Ground) -> None:
    assert it.shop.errors(2, it.refuse) == [REFUSED] * 2
    assert it.shop.errors(3, lambda: it.api.switch_rule(RULE, False)) == [None] * 3
    assert not it.api.rule(RULE).enabled
    assert it.shop.errors(3, lambda: it.api.switch_rule(RULE, True)) == [REFUSED] * 3


def a_rule_is_removed(it: Ground) -> None:
    assert it.shop.errors(2, it.refuse) == [REFUSED] * 2
    assert it.shop.errors(3, lambda: it.api.remove_rule(RULE)) == [None] * 3
    assert it.api.rules() == []


def a_rule_begins_anew(it: Ground) -> None:
    assert it.shop.errors(3, lambda: it.refuse(times=2)) == [REFUSED, REFUSED, None]
    assert it.api.rule(RULE).over
    assert it.shop.errors(3, lambda: it.api.reset_rule(RULE)) == [REFUSED, REFUSED, None]


def frames_that_wait_are_listed_while_others_go_on(it: Ground) -> None:
    with it.pausing("request") as answer:
        frame = it.paused()
        assert (frame.rule, frame.side, frame.api, frame.client_id) == (PAUSED, "request", "Metadata", PROBE)
        assert (round(frame.until - frame.since), frame.values) == (60, None)
        assert it.shop.errors(3) == [None] * 3
        assert it.api.paused() == [frame]
        it.api.rules_off()
        assert leader(answer.result(PATIENCE_S), it.shop.topic) == LEADER
    assert it.api.paused() == []


def a_frame_that_waits_is_told_with_its_values(it: Ground) -> None:
    with it.pausing("response") as answer:
        frame = it.api.paused_frame(it.paused().id)
        assert frame.values["cluster_id"] == it.kafka.cluster_id
        assert {f"{each['host']}:{each['port']}" for each in frame.values["brokers"]} == {
            node.listening for node in it.api.brokers() if node.kind == "broker"
        }
        it.api.resolve(frame.id)
        assert leader(answer.result(PATIENCE_S), it.shop.topic) == LEADER
    with pytest.raises(Refused, match=f"no frame '{frame.id}' is paused") as no:
        it.api.paused_frame(frame.id)
    assert no.value.status == 404


def an_edited_frame_is_what_the_client_sees(it: Ground) -> None:
    with it.pausing("response") as answer:
        frame = it.api.paused_frame(it.paused().id)
        (topic,) = frame.values["topics"]
        topic["partitions"][0]["leader_id"] = "nobody"
        with pytest.raises(Refused) as no:
            it.api.resolve(frame.id, values=frame.values)
        (mistake,) = no.value.mistakes
        assert (no.value.status, mistake.path) == (422, "values.topics[0].partitions[0].leader_id")
        topic["partitions"][0]["leader_id"] = 3
        it.api.resolve(frame.id, values=frame.values)
        assert leader(answer.result(PATIENCE_S), it.shop.topic) == 3


def a_capture_tells_how_it_stands(it: Ground) -> None:
    with it.capturing() as begun:
        it.shop.deliveries(3)
        capture_state = wait_for(lambda: (found := it.api.capture()).rows > begun.rows and found, "rows")
        assert (capture_state.folder, capture_state.records, capture_state.filter) == (
            begun.folder,
            "keep",
            it.records_of_the_shop,
        )
        assert (capture_state.failures, capture_state.dropped_bytes, capture_state.lost_frames) == (0, 0, 0)
    with pytest.raises(Refused, match="nothing is captured") as no:
        it.api.capture()
    assert no.value.status == 404


def a_capture_begins_with_connections_that_are_open(it: Ground) -> None:
    it.shop.deliveries(1)
    with it.capturing() as begun:
        values = [each.value for each in it.shop.deliveries(3)]
        with pytest.raises(Refused, match="end it first") as no:
            it.api.begin_capture(begun.folder)
        assert no.value.status == 409
    assert [value for value in values if any(value in frame for frame in requests_in(begun.folder))] == values
    with pytest.raises(Refused) as no:
        it.api.begin_capture(begun.folder, filter="acsk == 1")
    assert (no.value.status, no.value.mistakes[0].path) == (422, "filter")


def what_comes_after_the_end_of_a_capture_is_not_in_it(it: Ground) -> None:
    with it.capturing() as begun:
        before = it.shop.deliveries(2)
    after = it.shop.deliveries(2)
    known = b"".join(requests_in(begun.folder))
    assert [each.value in known for each in (*before, *after)] == [True, True, False, False]


def the_sealed_segments_of_the_last_capture_are_listed(it: Ground) -> None:
    with it.capturing() as begun:
        it.shop.deliveries(2)
        assert it.api.capture_segments().segments == []
    found = it.api.capture_segments()
    assert found.folder == begun.folder
    assert [(each.name, each.bytes) for each in found.segments] == [
        (path.name, path.stat().st_size) for path in Path(begun.folder).iterdir()
    ]


def a_capture_is_fetched_as_an_archive_while_the_client_works(it: Ground) -> None:
    with it.capturing() as begun:
        values = [each.value for each in it.shop.deliveries(3)]
        with pytest.raises(Refused, match="is sealed yet") as no:
            it.api.archive()
        assert no.value.status == 409
    elsewhere = it.folder / f"of-{it.api.client.__class__.__name__}"
    with tarfile.open(fileobj=io.BytesIO(it.api.archive())) as tar:
        tar.extractall(elsewhere, filter="data")
        names = tar.getnames()
    folder = Path(begun.folder)
    assert sorted(names) == sorted(f"{folder.name}/{path.name}" for path in folder.iterdir())
    for name in names:
        assert (elsewhere / name).read_bytes() == (folder.parent / name).read_bytes()
    known = b"".join(requests_in(begun.folder))
    assert [value in known for value in values] == [True] * 3
    assert it.shop.errors(3) == [None] * 3


def requests_in(folder: str) -> list[bytes]:
    """The frames of the shop's records in a capture."""
    rows = [row for row in read(folder) if row.side == "request" and row.frame is not None]
    assert {row.api_key for row in rows} == {API["Produce"].key}
    return [row.frame for row in rows if row.frame is not None]


def clusters(it: Ground) -> None:
    (cluster,) = it.api.clusters()
    seen = it.shop.producer.list_topics(timeout=30)
    assert cluster.cluster_id == it.kafka.cluster_id == seen.cluster_id
    assert (cluster.listening, cluster.bootstrap) == (it.klamm.bootstrap, it.kafka.bootstrap().split(","))
    assert (cluster.ready, cluster.reason, cluster.nodes) == (True, "", len(it.api.brokers()))


def brokers(it: Ground) -> None:
    seen = it.shop.producer.list_topics(timeout=30).brokers.values()
    nodes = it.api.brokers()
    assert {(each.id, f"{each.host}:{each.port}") for each in seen} == {
        (node.node_id, node.listening) for node in nodes if node.kind == "broker"
    }
    upstream = {node.node_id: node.upstream for node in nodes if node.kind == "broker"}
    assert upstream == {number: "{}:{}".format(*it.kafka.address(number)) for number in it.kafka.brokers}
    quorum = ask(it.klamm.address, "DescribeQuorum", 2, QUORUM)
    (controller,) = (node for node in it.api.brokers() if node.kind == "controller")
    (listener,) = quorum["nodes"][0]["listeners"]
    assert (controller.node_id, controller.listening) == (1, "{host}:{port}".format(**listener))


def connections(it: Ground) -> None:
    before = it.connection()
    it.shop.deliveries(3)
    after = it.connection()
    assert (after.id, after.client, after.since) == (before.id, before.client, before.since)
    for then, now in (
        (before.from_client_bytes, after.from_client_bytes),
        (before.to_client_bytes, after.to_client_bytes),
    ):
        assert then is not None
        assert now is not None
        assert now > then > 0
    assert {each.client_id for each in it.api.connections()} >= {SHOP, BILLING}


def a_connection_is_cut_and_the_client_comes_back(it: Ground) -> None:
    old = it.connection()
    it.shop.cut(lambda: it.api.close_connection(old.id))
    assert it.shop.errors(3) == [None] * 3
    assert it.connection().id != old.id
    with pytest.raises(Refused, match=f"there is no connection '{old.id}'"):
        it.api.close_connection(old.id)


def klamm_drains_and_ends(it: Ground) -> None:
    """One of its own: the others' goes on."""
    log = it.folder / f"{it.api.client.__class__.__name__}.log"
    with (
        klamm_in_front_of(it.kafka.bootstrap(), "127.0.0.1", log, drains=True) as klamm,
        probing(klamm.bootstrap) as ask_for,
        asking("sync", klamm.admin) as api,
    ):
        assert ask_for(it.shop.topic).result(PATIENCE_S)
        begun = api.drain(20)
        assert begun.connections > 0
        assert begun.within_s == 20
        it.api.asked |= api.asked
    lines = log.read_text()
    assert "POST /v1/drain" in lines
    assert "every connection has ended" in lines


def configuration(it: Ground) -> None:
    settings = it.api.config()
    assert settings["admin"]["listen"] == it.klamm.admin
    (cluster,) = settings["clusters"]
    assert cluster["bootstrap"] == it.kafka.bootstrap().split(",")


def klamm_reads_its_file_again_if_it_has_one(it: Ground) -> None:
    with pytest.raises(Refused, match="klamm runs without --config: there is no file to read again"):
        it.api.reload_config()


def the_newest_exchanges_are_chosen_by_their_fields(it: Ground) -> None:
    where = f"{it.records_of_the_shop} and acks == -1"
    it.api.exchanges(where)
    it.shop.deliveries(6)
    found = it.api.exchanges(where, 5, True)
    assert found.bodies
    assert [each.id for each in found.exchanges] == sorted(each.id for each in found.exchanges)
    assert [(each.api, each.client_id, each.broker, each.topics) for each in found.exchanges] == [
        ("Produce", SHOP, str(LEADER), {it.shop.topic: [0]})
    ] * 5
    it.shop.deliveries(1, lambda: it.refuse(times=1))
    (one,) = it.api.exchanges(f"error == {REFUSED} and api == Produce", 1).exchanges
    assert (one.errors, one.origin) == ({REFUSED: 1}, "klamm")
    for wrong in ("acsk == 1", "acks =="):
        with pytest.raises(Refused) as no:
            it.api.exchanges(wrong)
        assert (no.value.status, no.value.mistakes[0].path) == (422, "where")


def an_exchange_is_told_with_its_fields_and_its_bytes(it: Ground) -> None:
    where = it.records_of_the_shop
    it.api.exchanges(where)
    values = [each.value for each in it.shop.deliveries(2)]
    newest = it.api.exchanges(where, 5).exchanges[-1]
    exchange = it.api.exchange(newest.id)
    assert exchange.request.values["acks"] == -1
    assert exchange.response.values["responses"][0]["partition_responses"][0]["error_code"] == 0
    raw = it.api.exchange(newest.id, "raw")
    assert raw.request.bytes == len(b64decode(raw.request.raw))
    found = re.search(rb"order \d+", b64decode(raw.request.raw))
    assert found is not None
    assert int(found[0].split()[1]) >= int(values[-1].split()[1])
    with pytest.raises(Refused, match="not kept") as no:
        it.api.exchange(newest.id + 10_000)
    assert no.value.status == 404


def exchanges_are_told_as_they_happen(it: Ground) -> None:
    with it.api.live(it.records_of_the_shop, "raw") as next_one:
        known = [b64decode(next_one().request.raw or "") for _ in range(3)]
    records_seen = [found[0] for body in known if (found := re.search(rb"order \d+", body))]
    wait_for(lambda: records_seen[-1] in {each.value for each in it.shop.delivered}, "the last of them")
    values = [each.value for each in it.shop.delivered]
    first = values.index(records_seen[0])
    assert values[first : first + 3] == records_seen
    with it.api.live() as next_one:
        plain = next_one()
    assert (plain.request, plain.client_id in (SHOP, BILLING)) == (None, True)
    with pytest.raises(Refused) as no, it.api.live("acsk == 1"):
        pass
    assert no.value.mistakes[0].path == "where"


CHECKS: Mapping[tuple[str, str], Callable[[Ground], None]] = {
    ("GET", "/"): index,
    ("GET", "/healthz"): healthy,
    ("GET", "/readyz"): ready,
    ("GET", "/metrics"): metrics,
    ("GET", "/v1/counters"): counters,
    ("GET", "/v1/openapi.json"): document,
    ("GET", "/v1/rules"): rules_are_listed_with_what_the_client_met,
    ("GET", "/v1/rule-file"): there_is_no_rule_file,
    ("POST", "/v1/rules"): a_rule_is_in_force_when_it_is_answered,
    ("POST", "/v1/rules/off"): rules_end_together,
    ("GET", "/v1/rules/{name}"): a_rule_tells_its_hits,
    ("PUT", "/v1/rules/{name}"): a_rule_becomes_another,
    ("PATCH", "/v1/rules/{name}"): a_rule_is_switched,
    ("DELETE", "/v1/rules/{name}"): a_rule_is_removed,
    ("POST", "/v1/rules/{name}/reset"): a_rule_begins_anew,
    ("GET", "/v1/paused"): frames_that_wait_are_listed_while_others_go_on,
    ("GET", "/v1/paused/{name}"): a_frame_that_waits_is_told_with_its_values,
    ("POST", "/v1/paused/{name}"): an_edited_frame_is_what_the_client_sees,
    ("GET", "/v1/capture"): a_capture_tells_how_it_stands,
    ("POST", "/v1/capture"): a_capture_begins_with_connections_that_are_open,
    ("DELETE", "/v1/capture"): what_comes_after_the_end_of_a_capture_is_not_in_it,
    ("GET", "/v1/capture/segments"): the_sealed_segments_of_the_last_capture_are_listed,
    ("GET", "/v1/capture/archive"): a_capture_is_fetched_as_an_archive_while_the_client_works,
    ("GET", "/v1/clusters"): clusters,
    ("GET", "/v1/brokers"): brokers,
    ("GET", "/v1/connections"): connections,
    ("DELETE", "/v1/connections/{name}"): a_connection_is_cut_and_the_client_comes_back,
    ("POST", "/v1/drain"): klamm_drains_and_ends,
    ("GET", "/v1/config"): configuration,
    ("POST", "/v1/config"): klamm_reads_its_file_again_if_it_has_one,
    ("GET", "/v1/exchanges"): the_newest_exchanges_are_chosen_by_their_fields,
    ("GET", "/v1/exchanges/{name}"): an_exchange_is_told_with_its_fields_and_its_bytes,
    ("GET", "/v1/live"): exchanges_are_told_as_they_happen,
}


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_a_route_does_what_it_says(route: tuple[str, str], it: Ground) -> None:
    it.api.asked.clear()
    try:
        CHECKS[route](it)
    finally:
        it.api.rules_off()
    method, path = route
    asked = re.compile(path.replace("{name}", "[^/]+"))
    assert any(method == one and asked.fullmatch(other) for one, other in it.api.asked)
