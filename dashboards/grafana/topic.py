"""One topic, or all: how much, with which errors, how fast. klamm reads topics with full metering only."""

from klamm.dashboards.grafana.dashboard import TOPICS, dashboard
from klamm.dashboards.grafana.panels import lines, row
from klamm.dashboards.grafana.queries import most, quantile, rate

CHOSEN = "topic=~'$topic'"
LATENCY = "klamm_topic_request_duration_seconds"

PANELS = (
    row("How much?"),
    lines(
        "Requests by topic",
        "The ten topics that most requests name. A request with two topics counts for both.",
        "reqps",
        {"{{topic}}": most(rate("klamm_topic_requests_total", "topic", CHOSEN))},
        width=12,
        stacked=True,
    ),
    lines(
        "Requests by API",
        "Produce writes, Fetch reads; others look after topics and groups.",
        "reqps",
        {"{{api}}": rate("klamm_topic_requests_total", "api", CHOSEN)},
        width=12,
        stacked=True,
    ),
    row("What fails?"),
    lines(
        "Errors by topic",
        "Kafka errors about the chosen topics, those that rules make among them.",
        "ops",
        {"{{topic}}": most(rate("klamm_topic_errors_total", "topic", CHOSEN))},
        width=12,
    ),
    lines(
        "Errors by API and name",
        "The same errors. `klamm errors NAME` explains one.",
        "ops",
        {"{{api}} {{error}}": most(rate("klamm_topic_errors_total", "api, error", CHOSEN))},
        width=12,
    ),
    row("How fast?"),
    lines(
        "Produce by topic, 99%",
        "With acks=all it has the time of the replicas in it.",
        "s",
        {"{{topic}}": most(quantile(0.99, LATENCY, "topic", f"api='Produce', {CHOSEN}"))},
        width=12,
    ),
    lines(
        "Time by API, 99%",
        "Fetch waits for new records, up to fetch.max.wait.ms: on a quiet topic a high value is no fault.",
        "s",
        {"{{api}}": quantile(0.99, LATENCY, "api", CHOSEN)},
        width=12,
    ),
)

BOARD = dashboard(
    "topic",
    "topic",
    "One topic, or all: how much, with which errors, how fast. It needs full metering, the default.",
    PANELS,
    TOPICS,
)
