"""The admin API against its own OpenAPI document: whatever is sent, the answer is one that is promised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from copy import deepcopy
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode, checks
from schemathesis.core.failures import FailureGroup

from klamm.proxy.admin import openapi
from klamm.proxy.admin import server as admin
from tests.proxy.admin.admin_api import in_thread

STREAM = "/v1/live"  # has no end
DOCUMENT = openapi.document([route for route in admin.ROUTES if route.path != STREAM], "0")
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]
KINDS = """
    not_a_server_error status_code_conformance content_type_conformance response_schema_conformance
"""
checks.load_all_checks()
CHECKS: list[Any] = checks.CHECKS.get_by_names(KINDS.split())


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Captures of any name begin in the working directory."""
    with chdir(tmp_path_factory.mktemp("here")), in_thread() as it:
        yield f"http://{it.klamm.admin}"


Operation = schemathesis.APIOperation[Any, Any, Any, Any]
FEW = settings(
    max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck]
)


def fuzz(operation: Operation, address: str, mode: GenerationMode) -> set[int]:
    """The statuses of its answers. Raises where one is not promised."""
    statuses = set()

    @given(case=operation.as_strategy(generation_mode=mode))
    @FEW
    def each(case: schemathesis.Case) -> None:
        response = case.call(base_url=address)
        statuses.add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    each()
    return statuses


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_answer_is_one_of_the_document(operation: Any, address: str) -> None:
    assert fuzz(operation, address, GenerationMode.POSITIVE)


@pytest.mark.parametrize(
    ("method", "path"), [("post", "/v1/rules"), ("patch", "/v1/rules/{name}"), ("get", "/v1/exchanges")]
)
def test_what_is_not_as_the_document_wants_it_is_refused(method: str, path: str, address: str) -> None:
    found = fuzz(SCHEMA[path][method], address, GenerationMode.NEGATIVE)
    assert found & {400, 415, 422}


def test_an_answer_that_is_not_promised_is_found(address: str) -> None:
    less = deepcopy(DOCUMENT)
    del less["paths"]["/v1/rules/{name}"]["get"]["responses"]["404"]
    operation = schemathesis.openapi.from_dict(less)["/v1/rules/{name}"]["get"]
    with pytest.raises(FailureGroup):
        fuzz(operation, address, GenerationMode.POSITIVE)
