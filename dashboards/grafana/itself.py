"""Is klamm well: its processes, its connections, what it did not pass on, what it dropped."""

from klamm.dashboards.grafana.dashboard import dashboard
from klamm.dashboards.grafana.panels import Colours, lines, number, row, table
from klamm.dashboards.grafana.queries import (
    INSTANCE,
    STEP,
    increase,
    most,
    of,
    of_klamm,
    or_zero,
    quantile,
    rate,
    total,
)

ALARM: Colours = {None: "green", 1: "red"}
LEADS = "process_start_time_seconds{worker=''}"
PROCESS = "{{instance}} {{worker}}"

RUNNING = (
    row("What runs?"),
    table("Instances", "The version of each.", "none", of("klamm_build_info", about=INSTANCE)),
    number(
        "Started",
        "When the newest instance did.",
        "dateTimeFromNow",
        f"max({of_klamm(LEADS)}) * 1000",
        width=3,
    ),
    number(
        "Workers that died",
        "In the shown time. Another one was started for each.",
        "none",
        increase("klamm_workers_died_total", about=INSTANCE),
        width=3,
        colours=ALARM,
    ),
    number(
        "klamm.yaml rejected",
        "Instances whose klamm.yaml cannot be used: the settings before it stay in force.",
        "none",
        or_zero(total(of("klamm_config_rejected", about=INSTANCE))),
        width=3,
        colours=ALARM,
    ),
    number(
        "Next certificate expires",
        "Of klamm's own. klamm takes new files within a second.",
        "dateTimeFromNow",
        f"min({of('klamm_certificate_valid_until_timestamp_seconds', about=INSTANCE)}) * 1000",
    ),
    number(
        "Draining",
        "Instances that end their connections one by one, and take no new ones.",
        "none",
        total(of("klamm_draining", about=INSTANCE)),
        width=3,
        colours={None: "green", 1: "orange"},
    ),
)

RESOURCES = (
    row("Has it what it needs?"),
    lines(
        "CPU",
        "Cores. A process cannot use more than one for traffic: near 1 it is the limit.",
        "none",
        {PROCESS: of_klamm(f"rate(process_cpu_seconds_total{STEP})")},
    ),
    lines("Memory", "Of each process.", "bytes", {PROCESS: of_klamm("process_resident_memory_bytes")}),
    lines(
        "Open files",
        "As a share of the limit. A process has two for each of its connections.",
        "percentunit",
        {PROCESS: of_klamm("process_open_fds / process_max_fds")},
    ),
)

CONNECTIONS = (
    row("Connections"),
    lines(
        "Open, and requests under way",
        "A request under way waits for its response.",
        "none",
        {
            "connections": total(of("klamm_connections_open")),
            "requests": total(of("klamm_requests_in_flight")),
        },
    ),
    lines(
        "Opened, by broker",
        "Many of them with few requests: clients that connect anew for each piece of work.",
        "ops",
        {"{{cluster}} {{broker}}": rate("klamm_connections_opened_total", "cluster, broker")},
    ),
    lines(
        "Ended, by reason",
        "Why connections of clients ended.",
        "ops",
        {"{{reason}}": rate("klamm_connections_closed_total", "reason")},
    ),
)

LOST = (
    row("What did it not pass on, and what did it drop?"),
    table(
        "Problems since klamm started",
        "Connections that klamm refused, frames that it could not read or did not pass on.",
        "none",
        total(of("klamm_problems_total"), "kind, api, cluster, broker"),
        width=12,
    ),
    lines(
        "Dropped",
        "Lines of the log and of the audit log, frames of a capture, traces: there was no room for them.",
        "ops",
        {
            "log lines": rate("klamm_log_lines_dropped_total", about=INSTANCE),
            "audit lines": rate("klamm_audit_lines_dropped_total", about=INSTANCE),
            "frames of a capture": rate("klamm_capture_lost_frames_total", about=INSTANCE),
            "traces {{outcome}}": rate(
                "klamm_traced_exchanges_total", "outcome", "outcome!='exported'", about=INSTANCE
            ),
        },
        width=12,
    ),
)

SPEED = (
    row("Is it slow? And the capture that runs, if one does"),
    lines(
        "klamm's own time, 99%",
        "By API: of a sample of the reads, and of every frame that klamm holds.",
        "s",
        {"{{api}}": most(quantile(0.99, "klamm_own_duration_seconds", "api"))},
    ),
    lines(
        "Rows of the capture",
        "Frames and events given to it.",
        "ops",
        {"{{instance}}": rate("klamm_capture_rows_total", "instance", about=INSTANCE)},
    ),
    lines(
        "Bytes that wait for the disk",
        "Of the capture. What its queue has no room for is lost.",
        "bytes",
        {"{{instance}}": of("klamm_capture_waiting_bytes", about=INSTANCE)},
    ),
)

BOARD = dashboard(
    "klamm",
    "klamm itself",
    "Is klamm well: its processes, its connections, what it did not pass on, what it dropped.",
    [*RUNNING, *RESOURCES, *CONNECTIONS, *LOST, *SPEED],
)
