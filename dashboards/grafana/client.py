"""One client id, or all: what it asks, what goes wrong, how it works, and how clients connect."""

from klamm.dashboards.grafana.dashboard import CLIENTS, dashboard
from klamm.dashboards.grafana.panels import lines, row, table
from klamm.dashboards.grafana.queries import BROKERS, increase, most, of, rate, total

CHOSEN = "client_id=~'$client'"
PRODUCE = f"api='Produce', {CHOSEN}"

LOAD = (
    row("What does it ask?"),
    lines(
        "Requests by API",
        "Of the chosen clients.",
        "reqps",
        {"{{api}}": most(rate("klamm_requests_total", "api", CHOSEN))},
        stacked=True,
    ),
    lines(
        "Requests by broker",
        "To which brokers they go.",
        "reqps",
        {"{{cluster}} {{broker}}": rate("klamm_requests_total", "cluster, broker", CHOSEN)},
        stacked=True,
    ),
    lines(
        "Bytes",
        "What the chosen clients send, and what they get.",
        "Bps",
        {
            "requests": rate("klamm_request_bytes_total", where=CHOSEN),
            "responses": rate("klamm_response_bytes_total", where=CHOSEN),
        },
    ),
)

FAILING = (
    row("What goes wrong?"),
    lines(
        "Errors by client",
        "Kafka errors of brokers in responses to the chosen clients.",
        "ops",
        {"{{client_id}}": most(rate("klamm_client_errors_total", "client_id", f"{BROKERS}, {CHOSEN}"))},
    ),
    lines(
        "Errors by API and name",
        "The same errors. `klamm errors NAME` explains one.",
        "ops",
        {"{{api}} {{error}}": most(rate("klamm_client_errors_total", "api, error", f"{BROKERS}, {CHOSEN}"))},
    ),
    lines(
        "Requests without a response",
        "Requests whose connection ended first. A consumer that stops leaves its last Fetch behind.",
        "ops",
        {
            "{{client_id}} {{api}} {{reason}}": most(
                rate("klamm_requests_unanswered_total", "client_id, api, reason", CHOSEN)
            )
        },
    ),
)

HABITS = (
    row("How does it work?"),
    lines(
        "Bytes in a Produce request",
        "Small requests cost brokers most: linger.ms and batch.size make them larger.",
        "bytes",
        {
            "{{client_id}}": most(
                f"{rate('klamm_request_bytes_total', 'client_id', PRODUCE)}"
                f" / {rate('klamm_requests_total', 'client_id', PRODUCE)}"
            )
        },
    ),
    lines(
        "Requests that want no response",
        "Produce with acks=0: the client never learns of an error.",
        "reqps",
        {"{{client_id}}": most(rate("klamm_requests_one_way_total", "client_id", CHOSEN))},
    ),
    table(
        "Versions in use",
        "Requests in the shown time, by API and version.",
        "short",
        f"{increase('klamm_requests_total', 'client_id, api, version', CHOSEN)} > 0",
    ),
)

CONNECTING = (
    row("How do clients connect? (all clients: connections have no client id)"),
    table(
        "Software",
        "Connections since klamm started, by what clients call themselves.",
        "none",
        total(of("klamm_client_software_connections_total"), "name, version"),
    ),
    lines(
        "Authentications with klamm",
        "By mechanism and outcome. There are none without listen_sasl.",
        "ops",
        {
            "{{mechanism}} {{outcome}}": rate("klamm_client_authentications_total", "mechanism, outcome"),
        },
    ),
    lines(
        "Connections by principal",
        "The ten principals with most. There are none without certificates of clients or listen_sasl.",
        "none",
        {"{{principal}}": most(total(of("klamm_principal_connections_open"), "principal"))},
    ),
)

BOARD = dashboard(
    "client",
    "client",
    "One client id, or all: what it asks, what goes wrong, how it works, and how clients connect.",
    [*LOAD, *FAILING, *HABITS, *CONNECTING],
    CLIENTS,
)
