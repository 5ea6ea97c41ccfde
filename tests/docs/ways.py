"""How the blocks of the pages are tried: tables, to which a new block adds a row where nothing fits it yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from tests.docs.blocks import Block, Command

T = TypeVar("T")

# In all tables a pattern has to fit the beginning of the command.

# Commands that need more than the network of the pages: the test that holds each.
ELSEWHERE = {
    r"make demo": "tests/cli/test_demo.py::test_on_a_terminal_it_draws_until_interrupted_and_then_sums_up",
    r"make (help|test|check|bench)\b": "tests/docs/test_files.py::test_a_target_that_a_page_names_is_one_of_the_makefile",
    r"docker build ": "tests/deploy/test_image.py::test_the_steps_make_a_klamm",
    r"docker run ": "tests/deploy/test_page.py::test_docker_run_gives_klamm_arguments_that_it_takes",
    r"docker compose .* up\b": "tests/deploy/test_compose_runs.py::test_the_producer_sends_all_its_records_through_klamm",
    r"(docker compose|kubectl) .*\bexec ": "tests/deploy/test_page.py::test_a_command_in_a_container_is_one_of_klamm",
    r"kubectl (apply|-n kafka create) ": "tests/deploy/test_kubernetes.py::test_kubernetes_takes_every_object",
    r"(python3 -m venv|/opt/klamm/bin/pip|install|systemctl) ": "tests/deploy/test_page.py"
    "::test_what_is_installed_for_systemd_is_what_the_unit_names",
    r"make lock": "tests/deploy/test_lock.py::test_the_tool_leaves_a_lock_that_fits_as_it_is",
    r"make sbom": "tests/deploy/test_lock.py::test_the_bill_of_materials_lists_what_is_locked",
    r"(python3 -m venv .* )?(\.venv/bin/)?pip install": "tests/docs/test_wheel.py::test_the_advice_for_a_missing_extra_names_the_clone",
    r"\.venv/bin/python -m benchmarks": "tests/docs/test_files.py::test_a_benchmark_that_a_page_names_is_one",
    r"(klamm rules list --admin https:|curl --cacert )": "tests/e2e/commands/test_admin_tls.py"
    "::test_the_commands_take_https_and_credentials_as_options_and_from_the_environment",
    r"klamm run .*--handover": "tests/e2e/clusters/test_handover.py::test_nobody_is_refused_and_klamm_is_ready_all_the_time",
    r"klamm users ": "tests/cli/test_users.py::test_the_commands_of_the_page_make_a_file_that_klamm_takes",
    r"iptables ": "tests/e2e/test_transparent.py::test_a_client_that_knows_nothing_of_klamm_passes_through_it",
    r"tcpdump ": "tests/e2e/captures/test_import.py::test_klamm_and_tcpdump_capture_the_same_exchanges",
    r"tshark ": "tests/e2e/captures/test_export.py::test_tshark_reads_the_same_requests_and_responses",
    r"duckdb ": "tests/e2e/captures/test_export.py::test_duckdb_counts_the_same_in_parquet",
    r"klamm top(?!.*--once)": "tests/e2e/commands/test_top.py::test_keys_do_what_the_help_says",
    r"SSLKEYLOGFILE=|klamm import .*--keys": "tests/e2e/captures/test_import.py"
    "::test_tls_of_a_real_broker_is_read_with_the_secrets_of_its_client",
    r"klamm analyze s3a:": "tests/pipeline/test_cluster.py::test_tables_of_a_cluster_are_those_of_one_machine",
    r"klamm analyze .*--follow": "tests/cli/test_analyze.py"
    "::test_follow_tells_findings_and_ends_with_a_summary_at_ctrl_c",
    r"spark-submit ": "tests/pipeline/test_cluster.py::test_tables_of_a_cluster_are_those_of_one_machine",
    r"klamm replay --serve .*:9092": "tests/e2e/captures/test_replay_serve.py::test_the_recorded_session_runs_again",
    r"pytest --klamm-bootstrap": "tests/e2e/commands/test_examples.py::test_the_order_service_is_tested_with_the_fixture",
}

# Commands that run until they are interrupted: they have printed this by then.
ENDLESS = {
    r"(\.venv/bin/)?klamm run ": "metrics and health",
    r"klamm demo": "req/s",
    r"klamm tail": "\n",
    r"klamm web": "klamm web: http://127.0.0.1:",
    r"klamm replay .*--serve": "bootstrap.servers=",
    r"klamm (inject|delay|block|down|pause) (?!.*--follow 0)": "\n",
    r"curl .*/v1/live": "\n",
}

# The exit codes of commands that may end with another than 0.
EXIT_CODES = {
    r"klamm diff ": {0, 1},  # 1: they are not the same
    r"klamm replay .*--to": {0, 1},  # 1: the answers differ
    r"klamm scenario run ": {0, 1},  # 1: not all expectations were met
}
INTERRUPTED = {130, -2}  # by Ctrl-C: of klamm, of curl

# Commands that ask a running klamm, and those that are one at its usual ports.
LIVE = (
    r"klamm (tail|top|web|health|connections|inject|delay|block|down|pause|intercept|scenario run|rules (list|add|on|off|rm|reset))"
    r"|curl "
)
ITSELF = r"(\.venv/bin/)?klamm (run|demo|replay .*--serve)"
SPARK = r"klamm analyze "

# Commands that have to run before a command of the pages.
BEFORE = {
    r"klamm intercept": "klamm pause Metadata --side response --times 1 --follow 0 && "
    'until [ "$(curl -s http://127.0.0.1:19091/v1/paused | jq length)" -gt 0 ]; do sleep 0.1; done',
    r"klamm tail --rule": "klamm delay Produce 1ms --name slow-produce --follow 0",
}

# Options that make a command of the pages quicker.
QUICKER = {
    r"klamm scenario run (?!.*--speed)": " --speed 20",
    r"klamm replay (?!.*--asap).*--to": " --asap",
}

# Ids and names that the pages make up: the command that prints the ids of now.
WORKS = '[.[] | select(.client_id == "orders-service")] | max_by(.from_client_bytes).id'  # others may be idle
PAUSED = "curl -s http://127.0.0.1:19091/v1/paused | jq '.[0].id'"
IDS = {
    r"(klamm tail 'connection == )\d+": f"curl -s http://127.0.0.1:19091/v1/connections | jq '{WORKS}'",
    r"(--cluster )eu\b": "echo kafka",
    r"(klamm connections --close )\d+": f"curl -s http://127.0.0.1:19091/v1/connections | jq '{WORKS}'",
    r"(klamm intercept (?:resume|show|edit|error) )\d+": PAUSED,
}


def first(table: Mapping[str, T], text: str) -> T | None:
    """The entry of the first pattern that fits."""
    return next((value for pattern, value in table.items() if re.match(pattern, text)), None)


def as_it_is(text: str, asked: Callable[[str], str]) -> str:
    """A command with ids of now, in its quicker form."""
    text += first(QUICKER, text) or ""
    for pattern, command in IDS.items():
        if re.search(pattern, text):
            text = re.sub(pattern, rf"\g<1>{asked(command).strip()}", text)
    return text


# ---- outputs --------------------------------------------------------------------------------------------------

# Pages whose blocks without a language are made from tables: the test that they are what the tables say.
GENERATED = {
    r"docs/protocol\.md": "tests/tools/test_protocol_doc.py::test_the_page_is_what_the_tables_say_now",
    r"docs/blocked\.md": "tests/e2e/reactions/test_blocked.py::test_the_page_has_each_client_and_action",
    r"docs/rules\.md": "tests/rules/file/test_rule_file_docs.py::test_the_reference_is_what_the_code_says_now",
}

# Outputs that stand without their command, by page and first word or words: the test that holds their form.
PRINTED = {
    "README.md: klamm stands": "tests/docs/test_commands.py::test_what_klamm_run_prints_is_what_the_readme_shows",
    "docs/sasl.md: klamm stands": "tests/docs/test_commands.py::test_what_klamm_run_prints_is_what_the_readme_shows",
    "README.md: 22:07:28.506": "tests/docs/test_commands.py::test_what_klamm_run_logs_is_what_the_readme_shows",
    "docs/sasl.md: 22:07:42.199": "tests/docs/test_commands.py::test_what_klamm_run_logs_is_what_the_readme_shows",
    "README.md: klamm_requests_t": "tests/proxy/test_metrics.py"
    "::test_the_documentation_lists_every_metric_with_its_type_and_labels",
    "README.md: rules: 2 from": "tests/proxy/ruling/test_rule_reload.py::test_the_start_says_rules_file_and_seed",
    "docs/analyze.md: capture/": "tests/cli/test_analyze.py::test_a_run_finds_who_does_what_and_fails_for_it",
    "docs/analyze.md: compared with before/": "tests/pipeline/report/test_comparison.py::test_the_text_has_a_line_for_each_and_shows_what_clients_are_called_as_text",
    "docs/captures.md: records:": "tests/cli/test_show.py::test_values_tell_what_batches_are_though_their_records_are_blank",
    "docs/captures.md:   response as": "tests/cli/test_show.py::test_what_klamm_did_and_what_is_missing_is_said",
    "docs/configuration.md: klamm.yaml:3:5:": "tests/cli/test_config_file.py"
    "::test_a_mistake_is_named_with_its_line_column_key_and_what_to_do",
    "docs/pipeline.md: +-----": "tests/docs/test_python.py::test_a_program_for_spark_runs",
    "docs/replay.md: 77 requests": "tests/replay/test_comparing.py::test_errors_are_told_by_name_with_how_often_and_the_first",
    "docs/replay.md: nothing rec": "tests/replay/test_serving.py::test_the_nearest_of_what_was_recorded_is_named",
    "docs/traces.md: trace  span": "tests/e2e/test_traces.py"
    "::test_what_a_client_produces_and_consumes_is_in_the_traces_of_its_records",
    "docs/traces.md: klamm_traced": "tests/proxy/test_metrics.py"
    "::test_the_documentation_lists_every_metric_with_its_type_and_labels",
    "docs/testing.md: ----------": "tests/client/test_pytest_plugin.py"
    "::test_a_failed_test_shows_the_last_exchanges_and_the_rules_that_fired",
}

# Lines of outputs that tell of one run alone, though no number is in them.
ONE_RUN = r"(settings |Enter to edit again|TLS, not read|TLS is read with|what clients said in TLS|librdkafka-test|of +|lost:|JoinGroup-delay)"


def key(block: Block) -> str:
    """The page, and how the block begins."""
    return f"{block.page}: {block.text.splitlines()[0]}"


def printed_by(block: Block) -> str | None:
    """The test that holds an output."""
    return next((test for begins, test in PRINTED.items() if key(block).startswith(begins)), None)


def plain(text: str) -> str:
    """With one space where there are several, and no space at the end of a line."""
    return re.sub(r"[ \t]*\n", "\n", re.sub(r"[ \t]+", " ", text))


def lasting(command: Command) -> list[str]:
    """The lines of its output, as the page shows it, that every run prints: those without numbers, as headings."""
    lines = [line.strip() for line in plain(command.output).splitlines()]
    lines = [line for line in lines if not re.search(r"\d", re.sub(r"\bp\d\d\b", "", line))]
    return [line for line in lines if " " in line and not re.match(ONE_RUN, line)]
