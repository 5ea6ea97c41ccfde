"""Faults that rules make: which rules act, what they hit, and what clients make of it."""

from klamm.dashboards.grafana.dashboard import dashboard
from klamm.dashboards.grafana.panels import Colours, lines, number, row
from klamm.dashboards.grafana.queries import INSTANCE, RULES, most, of, or_zero, rate, total

SOME: Colours = {None: "green", 1: "orange"}


def by_rule(metric: str) -> str:
    """Rules belong to an instance of klamm, and to no cluster."""
    return rate(metric, "rule", about=INSTANCE)


NOW = (
    row("Does klamm break things now?"),
    number(
        "Rules that act",
        "Rules of the file and by hand that are switched on, not dry, and not over.",
        "none",
        total(of("klamm_rules_active", about=INSTANCE), "origin"),
        width=8,
        colours=SOME,
        name="{{origin}}",
    ),
    number(
        "Rules without an end",
        "Rules made by hand that end only when somebody removes them.",
        "none",
        total(of("klamm_rules_without_end", about=INSTANCE)),
        colours=SOME,
    ),
    number(
        "Paused frames",
        "Frames that wait for somebody's decision: `klamm intercept`.",
        "none",
        total(of("klamm_frames_paused", about=INSTANCE)),
        colours=SOME,
    ),
    number(
        "Rule file rejected",
        "Instances whose rule file has mistakes: the rules before it stay in force.",
        "none",
        or_zero(total(of("klamm_rule_file_rejected", about=INSTANCE))),
        colours={None: "green", 1: "red"},
    ),
    number(
        "Answers of klamm",
        "Requests that klamm answers itself: no broker sees them.",
        "reqps",
        or_zero(rate("klamm_own_answers_total")),
    ),
)

DOING = (
    row("What do the rules do?"),
    lines(
        "Matches by rule",
        "Frames or connections that a rule selects.",
        "ops",
        {"{{rule}}": by_rule("klamm_rule_matches_total")},
    ),
    lines(
        "Hits by rule",
        "Matches on which the rule acted, or would have if it were not dry.",
        "ops",
        {"{{rule}}": by_rule("klamm_rule_hits_total")},
    ),
    lines(
        "Failures by rule",
        "Actions that failed, and conditions that took too much work: the frame went on as it was.",
        "ops",
        {"{{rule}}": by_rule("klamm_rule_failures_total")},
    ),
)

REACTIONS = (
    row("What do clients make of it?"),
    lines(
        "Errors made by rules, by client",
        "Who gets which errors of klamm.",
        "ops",
        {"{{client_id}} {{error}}": most(rate("klamm_client_errors_total", "client_id, error", RULES))},
    ),
    lines(
        "Errors of klamm and of brokers",
        "Errors of brokers that rise with those of klamm are reactions of clients.",
        "ops",
        {"{{origin}}": rate("klamm_errors_total", "origin")},
    ),
    lines(
        "Answers of klamm by API",
        "Requests that no broker saw.",
        "reqps",
        {"{{api}}": rate("klamm_own_answers_total", "api")},
    ),
    lines(
        "Requests by client",
        "Retries are more requests; a client that gave up sends none.",
        "reqps",
        {"{{client_id}}": most(rate("klamm_requests_total", "client_id"))},
        width=12,
    ),
    lines(
        "Connections that end, by reason",
        "Faults that cut connections are among the reasons.",
        "ops",
        {"{{reason}}": rate("klamm_connections_closed_total", "reason")},
        width=12,
    ),
)

BOARD = dashboard(
    "faults",
    "faults",
    "Faults that rules make: which rules act, what they hit, and what clients make of it.",
    [*NOW, *DOING, *REACTIONS],
)
