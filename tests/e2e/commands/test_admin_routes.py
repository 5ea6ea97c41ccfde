"""Each route of the admin API has a check, and both clients have the same calls. This needs no broker."""

from klamm.client import AsyncKlamm, Klamm
from tests.e2e.commands.test_admin import CHECKS, ROUTES


def calls(client: type) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_")}


def test_every_route_has_a_check_and_no_other() -> None:
    assert CHECKS.keys() == set(ROUTES), "name the route in CHECKS of tests/e2e/commands/test_admin.py"


def test_both_clients_have_the_same_calls() -> None:
    assert calls(Klamm) == calls(AsyncKlamm), "name the call in client/sync.py and client/asynchronous.py"
