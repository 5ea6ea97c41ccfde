"""aiokafka as a client program; actions.py says how it is called."""

import asyncio
import ssl
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from actions import Action, enough, pace, run, settle_s
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from records import digest, fingerprint, record


class Token(AbstractTokenProvider):
    """Of a file."""

    def __init__(self, file: str) -> None:
        self.text = Path(file).read_text()

    async def token(self) -> str:
        return self.text


def _settings(bootstrap: str, action: Action) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap, "client_id": "aiokafka-test"}
    if action["security"] != "PLAINTEXT":
        settings["security_protocol"] = action["security"]
    if "SSL" in action["security"]:
        settings["ssl_context"] = ssl.create_default_context(cafile=action["ca"])
        if action["cert"]:
            settings["ssl_context"].load_cert_chain(action["cert"])
    if action["token"]:
        settings |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Token(action["token"])}
    elif action["mechanism"]:
        settings |= {
            "sasl_mechanism": action["mechanism"],
            "sasl_plain_username": action["username"],
            "sasl_plain_password": action["password"],
        }
    return settings


async def produce(bootstrap: str, action: Action) -> dict[str, Any]:
    """Send the records of a seed; in a transaction where there is a transactional id."""
    settings = _settings(bootstrap, action) | {
        "acks": action["acks"] if action["acks"] == "all" else int(action["acks"]),
        "enable_idempotence": action["idempotent"] or bool(action["transactional_id"]),
        "transactional_id": action["transactional_id"],
        "compression_type": None if action["compression"] == "none" else action["compression"],
        "max_request_size": 50 << 20,
    }
    async with AIOKafkaProducer(**settings) as producer:

        async def send(seed: str, count: int) -> list[Any]:
            futures, started = [], time.monotonic()
            for index in range(count):
                if delay_s := pace(action, index, started):
                    await asyncio.sleep(delay_s)
                key, value, headers = record(seed, index, action["size"], action["headers"])
                futures.append(await producer.send(action["topic"], value=value, key=key, headers=headers))
            return await asyncio.gather(*futures, return_exceptions=True)

        if action["transactional_id"]:
            if action["aborted"]:
                await producer.begin_transaction()
                await send("aborted", action["aborted"])
                await producer.abort_transaction()
            async with producer.transaction():
                answers = await send(action["seed"], action["count"])
        else:
            answers = await send(action["seed"], action["count"])
        await asyncio.sleep(settle_s(action))
    failed = [index for index, answer in enumerate(answers) if isinstance(answer, BaseException)]
    for index in failed:
        print(repr(answers[index]), file=sys.stderr)
    return {"acknowledged": action["count"] - len(failed), "failed": failed}


async def consume(bootstrap: str, action: Action) -> dict[str, Any]:
    """Read `count` records in a classic group, and commit."""
    settings = _settings(bootstrap, action) | {
        "group_id": action["group"],
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "isolation_level": action["isolation"],
        "max_partition_fetch_bytes": 32 << 20,
    }
    fingerprints: list[str] = []
    deadline = time.monotonic() + action["timeout_s"]
    async with AIOKafkaConsumer(action["topic"], **settings) as consumer:
        while not enough(action, fingerprints) and time.monotonic() < deadline:
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                fingerprints += [
                    fingerprint(item.topic, item.key, item.value, item.headers) for item in batch
                ]
        await consumer.commit()
    result = {"count": len(fingerprints), "digest": digest(fingerprints)}
    return result | ({"fingerprints": fingerprints} if action["list"] else {})


async def administrate(bootstrap: str, action: Action) -> dict[str, Any]:
    """Create a topic, look at everything, delete it."""
    admin = AIOKafkaAdminClient(**_settings(bootstrap, action))
    topic = action["topic"]
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, action["partitions"], action["replication_factor"])])
        described: list[Any] = []
        while not (described and described[0]["partitions"]):
            described = await admin.describe_topics([topic])
        cluster = await admin.describe_cluster()
        configs = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        result = {
            "partitions": len(described[0]["partitions"]),
            "brokers": [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]],
            "topics": topic in await admin.list_topics(),
            "configs": sum(len(resource[4]) for answer in configs for resource in answer.resources),
            "groups": sorted({name for name, *_ in await admin.list_consumer_groups()}),
        }
        await admin.delete_topics([topic])
    finally:
        await admin.close()
    return result


Coroutines = Callable[[str, Action], Coroutine[Any, Any, dict[str, Any]]]


def _blocking(act: Coroutines) -> Callable[[str, Action], dict[str, Any]]:
    return lambda bootstrap, action: asyncio.run(act(bootstrap, action))


if __name__ == "__main__":
    run(
        {
            name: _blocking(act)
            for name, act in {"produce": produce, "consume": consume, "administrate": administrate}.items()
        }
    )
