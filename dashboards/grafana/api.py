"""One API of Kafka, or all: how much, with which errors, how fast, from whom."""

from klamm.dashboards.grafana.dashboard import APIS, dashboard
from klamm.dashboards.grafana.panels import lines, row, table
from klamm.dashboards.grafana.queries import BROKERS, increase, most, quantile, rate

CHOSEN = "api=~'$api'"
LATENCY, OWN = "klamm_request_duration_seconds", "klamm_own_duration_seconds"

LOAD = (
    row("How much?"),
    lines(
        "Requests by API",
        "The ten APIs with most requests.",
        "reqps",
        {"{{api}}": most(rate("klamm_requests_total", "api", CHOSEN))},
        stacked=True,
    ),
    lines(
        "Requests by broker",
        "Whether one broker has most of the work.",
        "reqps",
        {"{{cluster}} {{broker}}": rate("klamm_requests_total", "cluster, broker", CHOSEN)},
        stacked=True,
    ),
    lines(
        "Bytes",
        "Requests go to the brokers, responses to the clients.",
        "Bps",
        {
            "requests": rate("klamm_request_bytes_total", where=CHOSEN),
            "responses": rate("klamm_response_bytes_total", where=CHOSEN),
        },
    ),
)

FAILING = (
    row("What fails?"),
    lines(
        "Errors by name",
        "Kafka errors of brokers. `klamm errors NAME` explains one.",
        "ops",
        {"{{api}} {{error}}": most(rate("klamm_errors_total", "api, error", f"{BROKERS}, {CHOSEN}"))},
    ),
    lines(
        "Errors by broker",
        "Errors of one broker alone hint at the broker, those of all brokers at the clients.",
        "ops",
        {"{{cluster}} {{broker}}": rate("klamm_errors_total", "cluster, broker", f"{BROKERS}, {CHOSEN}")},
    ),
    lines(
        "Requests without a response",
        "Requests whose connection ended first, and why it ended.",
        "ops",
        {"{{api}} {{reason}}": most(rate("klamm_requests_unanswered_total", "api, reason", CHOSEN))},
    ),
)

SLOW = (
    row("How fast?"),
    lines(
        "Time of the brokers",
        "Up to the arrival of the response. Fetch waits for records, JoinGroup and SyncGroup for members.",
        "s",
        {f"{share:.0%}": quantile(share, LATENCY, where=CHOSEN) for share in (0.99, 0.95, 0.5)},
    ),
    lines(
        "Time of each broker, 99%",
        "Whether one broker is slower than the others.",
        "s",
        {"{{cluster}} {{broker}}": quantile(0.99, LATENCY, "cluster, broker", CHOSEN)},
    ),
    lines(
        "klamm's own time, 99%",
        "Of a sample of the reads, and of every frame that klamm holds.",
        "s",
        {"{{api}}": most(quantile(0.99, OWN, "api", CHOSEN))},
    ),
)

CLIENTS = (
    row("From whom?"),
    lines(
        "Requests by client",
        "The ten clients with most requests.",
        "reqps",
        {"{{client_id}}": most(rate("klamm_requests_total", "client_id", CHOSEN))},
        width=12,
        stacked=True,
    ),
    table(
        "Versions in use",
        "Requests in the shown time: who has to be upgraded before brokers drop an old version.",
        "short",
        f"{increase('klamm_requests_total', 'api, version, client_id', CHOSEN)} > 0",
        width=12,
    ),
)

BOARD = dashboard(
    "api",
    "API",
    "One API of Kafka, or all: how much, with which errors, how fast, from whom.",
    [*LOAD, *FAILING, *SLOW, *CLIENTS],
    APIS,
)
