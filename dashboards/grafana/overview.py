"""Is it up, who is failing, what is slow, is it klamm or the broker, who produces the load."""

from klamm.dashboards.grafana.dashboard import dashboard
from klamm.dashboards.grafana.panels import lines, number, row, states
from klamm.dashboards.grafana.queries import (
    BROKERS,
    INSTANCE,
    WAITING,
    most,
    of,
    or_zero,
    quantile,
    rate,
    total,
)

UP = (
    row("Is it up?"),
    number(
        "klamm",
        "Instances of klamm that Prometheus scrapes.",
        "none",
        f"count({of('klamm_build_info', about=INSTANCE)})",
        colours={None: "red", 1: "green"},
    ),
    number(
        "Clusters not ready",
        "Clusters that did not answer klamm last.",
        "none",
        f"sum({of('klamm_cluster_ready')} == bool 0)",
        colours={None: "green", 1: "red"},
    ),
    number(
        "Brokers not reachable",
        "Brokers to which the last attempt to connect failed, a client's or klamm's own.",
        "none",
        f"sum({of('klamm_broker_up')} == bool 0)",
        colours={None: "green", 1: "red"},
    ),
    number(
        "Connections",
        "Connections of clients that are open now.",
        "none",
        total(of("klamm_connections_open")),
    ),
    number("Requests", "Requests of clients.", "reqps", rate("klamm_requests_total")),
    number(
        "Errors per response",
        "Kafka errors of brokers for each response. A response about three partitions may count three.",
        "percentunit",
        f"{or_zero(rate('klamm_errors_total', where=BROKERS))} / {rate('klamm_responses_total')}",
        colours={None: "green", 0.01: "orange", 0.1: "red"},
    ),
    states(
        "Brokers",
        "Whether each broker can be reached. klamm asks each every 30 s.",
        f"min by (cluster, broker) ({of('klamm_broker_up')})",
        "{{cluster}} {{broker}}",
    ),
)

FAILING = (
    row("Who is failing?"),
    lines(
        "Errors by client",
        "Kafka errors of brokers, for the ten clients with most. The client dashboard tells more.",
        "ops",
        {"{{client_id}}": most(rate("klamm_client_errors_total", "client_id", BROKERS))},
        width=12,
    ),
    lines(
        "Errors by API",
        "The same errors, by Kafka's name for them. `klamm errors NAME` explains one.",
        "ops",
        {"{{api}} {{error}}": most(rate("klamm_errors_total", "api, error", BROKERS))},
        width=12,
    ),
    lines(
        "Requests without a response",
        "Requests whose connection ended first, and why. A consumer that stops leaves its last Fetch.",
        "ops",
        {"{{broker}} {{reason}}": most(rate("klamm_requests_unanswered_total", "broker, reason"))},
        width=12,
    ),
    lines(
        "Problems",
        "Connections that klamm refused, frames that it could not read or did not pass on, by kind.",
        "ops",
        {"{{kind}}": rate("klamm_problems_total", "kind")},
        width=12,
    ),
)

SLOW = (
    row("What is slow: klamm, or a broker?"),
    lines(
        "Brokers: 99% of responses come within",
        "By API, without those that wait in the broker on purpose, as Fetch.",
        "s",
        {"{{api}}": quantile(0.99, "klamm_request_duration_seconds", "api", WAITING)},
        width=12,
    ),
    lines(
        "klamm: its own time",
        "Of a sample of the reads, and of every frame that klamm holds.",
        "s",
        {
            "99%": quantile(0.99, "klamm_own_duration_seconds"),
            "50%": quantile(0.5, "klamm_own_duration_seconds"),
        },
        width=12,
    ),
)

LOAD = (
    row("Who produces the load?"),
    lines(
        "Requests by client",
        "The ten clients with most requests.",
        "reqps",
        {"{{client_id}}": most(rate("klamm_requests_total", "client_id"))},
        stacked=True,
    ),
    lines(
        "Bytes by client",
        "Requests and responses together, for the ten clients with most bytes.",
        "Bps",
        {
            "{{client_id}}": most(
                f"{rate('klamm_request_bytes_total', 'client_id')}"
                f" + {rate('klamm_response_bytes_total', 'client_id')}"
            )
        },
        stacked=True,
    ),
    lines(
        "Requests by topic",
        "The ten topics that most requests name. It needs full metering, the default.",
        "reqps",
        {"{{topic}}": most(rate("klamm_topic_requests_total", "topic"))},
        stacked=True,
    ),
)

BOARD = dashboard(
    "overview",
    "overview",
    "Is it up, who is failing, what is slow and is it klamm or a broker, who produces the load.",
    [*UP, *FAILING, *SLOW, *LOAD],
)
