"""The exceptions of the Python client of the admin API."""

import asyncio

import pytest

from klamm.client import AsyncKlamm, Klamm, NoAnswer
from tests.brokers.processes import free_ports


def test_where_no_klamm_is_there_both_clients_say_so() -> None:
    nowhere = f"127.0.0.1:{free_ports()}"
    with pytest.raises(NoAnswer, match=f"no klamm answers at {nowhere}"):
        Klamm(nowhere).rules()

    async def ask() -> None:
        async with AsyncKlamm(nowhere) as klamm:
            await klamm.rules()

    with pytest.raises(NoAnswer, match=f"no klamm answers at {nowhere}"):
        asyncio.run(ask())
