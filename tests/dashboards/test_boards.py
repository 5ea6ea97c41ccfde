"""The dashboards of Grafana hang together; Grafana's classes know every key, and klamm every metric."""

import json
import re
from pathlib import Path
from typing import Any

import grafana_foundation_sdk.cog.plugins as plugins
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from klamm.dashboards.files import RULES, described, text_of
from klamm.dashboards.grafana.boards import BOARDS
from tests.brokers.jars import ROOT
from tests.dashboards.promql import filled, metric, panels, queries, rules, selectors

MOST_PANELS = 12  # beside headings and numbers: more is a wall
MOST_BYTES = 200_000
UNITS = {"none", "short", "ops", "reqps", "Bps", "bytes", "s", "percentunit", "dateTimeFromNow"}
OF_GRAFANA = {"__range": "5m", "__rate_interval": "1m"}

# Metrics that no panel and no rule asks for, and why.
LEFT_OUT = {
    "klamm_client_instances_total": "of clients that are newer than Kafka 4.4",
    "klamm_cluster_state": "klamm_cluster_ready, klamm_broker_up and klamm_draining say it",
    "klamm_capture_dropped_bytes_total": "klamm_capture_lost_frames_total says it",
    "klamm_capture_failures_total": "klamm_capture_failing says it",
    "klamm_capture_segments_total": "klamm_capture_rows_total says it",
    "klamm_opaque_bytes_total": "only without new addresses, and without a certificate",
    "klamm_reauthentications_total": "a problem says where one fails",
    "klamm_workers": "klamm_workers_died_total says where one is missing",
    "process_virtual_memory_bytes": "says nothing about the memory in use",
}

plugins.register_default_plugins()


@pytest.fixture(params=BOARDS)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A dashboard, as it is in its file."""
    read: dict[str, Any] = json.loads(text_of(f"grafana/{request.param}.json"))
    return read


def variables(board: dict[str, Any]) -> list[str]:
    return [each["name"] for each in board["templating"]["list"]]


def test_dashboards_have_names_of_their_own() -> None:
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)


def test_a_dashboard_asks_for_source_instances_and_clusters(board: dict[str, Any]) -> None:
    first, second, third = board["templating"]["list"][:3]
    assert (first["type"], first["query"]) == ("datasource", "prometheus")
    assert (second["name"], third["name"]) == ("instance", "cluster")
    assert all(each["includeAll"] and each["multi"] for each in (second, third))
    assert all(each["current"]["value"] == ["$__all"] for each in (second, third))


def test_a_dashboard_leads_to_the_others_with_the_same_choice_and_time(board: dict[str, Any]) -> None:
    (link,) = board["links"]
    assert (link["includeVars"], link["keepTime"]) == (True, True)
    assert link["tags"] == board["tags"]


def test_panels_have_ids_and_titles_of_their_own(board: dict[str, Any]) -> None:
    for key in ("id", "title"):
        found = [panel[key] for panel in board["panels"]]
        assert len(set(found)) == len(found)


def test_no_panel_lies_over_another_or_beside_the_grid(board: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        assert max(columns) < 24
        taken |= cells


def test_a_line_of_panels_is_as_wide_as_the_grid(board: dict[str, Any]) -> None:
    widths: dict[int, int] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        widths[place["y"]] = widths.get(place["y"], 0) + place["w"]
    assert set(widths.values()) == {24}


def test_a_panel_says_what_it_shows_and_in_which_unit(board: dict[str, Any]) -> None:
    for panel in panels(board):
        assert panel["description"].endswith((".", "`")), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_a_dashboard_is_no_wall_of_panels(board: dict[str, Any]) -> None:
    assert 0 < len([panel for panel in panels(board) if panel["type"] != "stat"]) <= MOST_PANELS
    assert board["panels"][0]["type"] == "row"


def test_targets_of_a_panel_are_told_apart(board: dict[str, Any]) -> None:
    for panel in panels(board):
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))
        names = [target["legendFormat"] for target in panel["targets"]]
        assert len(set(names)) == len(names)


def test_the_labels_of_a_legend_are_those_that_the_query_keeps(board: dict[str, Any]) -> None:
    for panel in panels(board):
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            if "sum" in target["expr"] or "min by" in target["expr"]:
                assert named <= kept, panel["title"]
            if target["legendFormat"] and panel["type"] == "timeseries":
                assert kept - {"le"} <= named, panel["title"]


def test_a_dashboard_has_the_variables_that_its_queries_use_and_no_others(board: dict[str, Any]) -> None:
    asked = json.dumps([board["panels"], [each["query"] for each in board["templating"]["list"]]])
    used = set(re.findall(r"\$\{?(\w+)", asked)) - set(OF_GRAFANA)
    assert used == set(variables(board))


def test_a_variable_asks_only_for_those_before_it(board: dict[str, Any]) -> None:
    names = variables(board)
    for number, each in enumerate(board["templating"]["list"]):
        assert set(re.findall(r"\$(\w+)", json.dumps(each["query"]))) <= set(names[:number])


def lost(ours: Any, theirs: Any, where: str = "") -> list[str]:
    """What is in the first value, and not or otherwise in the second."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        missing = [f"{where}/{key}" for key in ours.keys() - theirs.keys()]
        both = ours.keys() & theirs.keys()
        return missing + [each for key in both for each in lost(ours[key], theirs[key], f"{where}/{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [each for number, pair in pairs for each in lost(*pair, f"{where}/{number}")]
    return [] if ours == theirs else [where]


def read_by_grafana(board: dict[str, Any]) -> Any:
    """What Grafana's own classes keep of it."""
    return json.loads(JSONEncoder().encode(Dashboard.from_json(board)))


def test_grafanas_own_classes_know_every_key(board: dict[str, Any]) -> None:
    assert lost(board, read_by_grafana(board)) == []


@pytest.mark.parametrize(
    ("part", "key"), [("gridPos", "colums"), ("options", "tooltips"), ("fieldConfig", "default")]
)
def test_grafanas_own_classes_notice_a_wrong_key(part: str, key: str) -> None:
    wrong = json.loads(text_of("grafana/api.json"))
    wrong["panels"][1][part][key] = {}
    assert lost(wrong, read_by_grafana(wrong)) == [f"/panels/1/{part}/{key}"]


def documented() -> set[str]:
    page = (ROOT / "docs" / "metrics.md").read_text()
    return set(re.findall(r"^\| `((?:klamm|process)_\w+)` \|", page, re.MULTILINE))


def test_every_metric_of_a_panel_or_rule_is_one_of_klamm() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    asked = [query.expression for query in queries()] + [rule["expr"] for rule in rules()]
    asked += [str(each["query"]) for board in BOARDS.values() for each in board["templating"]["list"]]
    named = {metric(selector) for expression in asked for selector in selectors(expression)}
    assert named - documented() - recorded == {"up"}
    assert documented() - named == set(LEFT_OUT)


def test_every_expression_asks_for_something() -> None:
    assert [query for query in queries() if not selectors(query.expression)] == []
    assert [rule for rule in rules() if not selectors(rule["expr"])] == []


def test_a_query_about_clusters_keeps_to_the_chosen_ones() -> None:
    for query in queries():
        for selector in selectors(query.expression):
            chosen = "cluster=~'$cluster', instance=~'$instance'" in selector
            of_no_cluster = selector.startswith(("klamm_rule", "klamm_frames_", "klamm_build", "process_"))
            of_process = re.match(
                r"klamm_(certificate|config|draining|workers|log_lines|audit_lines|capture|traced)", selector
            )
            assert chosen or of_no_cluster or of_process, query.where
            assert "instance=~'$instance'" in query.expression, query.where


def test_prometheus_reads_every_query(promtool: Any, tmp_path: Path) -> None:
    values = OF_GRAFANA | dict.fromkeys(("instance", "cluster", "client", "topic", "api"), ".*")
    made = [
        {"record": f"panel:{number}", "expr": filled(query.expression, values)}
        for number, query in enumerate(queries())
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": made}]}))
    assert f"SUCCESS: {len(made)} rules found" in promtool("check", "rules", file)


def test_the_files_are_small_and_so_is_the_folder() -> None:
    assert sum(len(text_of(name)) for name in described()) < MOST_BYTES
    folders = (ROOT / "dashboards" / name for name in ("grafana", "prometheus"))
    files = [path for folder in folders for path in folder.iterdir() if path.suffix in (".py", ".yaml")]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    assert {f"prometheus/{name}.yaml" for name in RULES} <= set(described())
