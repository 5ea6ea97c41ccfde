"""Which clients wait by themselves when an answer tells them to: Kafka's own classes say it."""

from klamm.decoders import API, encode
from klamm.decoders.schema import version_range
from klamm.rules.actions.throttle import FIELD, HEEDED
from tests.oracle.messages import NEWEST_FIRST, _run

Layout = tuple[str, int]

# Early access layouts that no release kept.
UNREAD = {("ShareGroupHeartbeat", 0), ("ShareGroupDescribe", 0), ("ShareFetch", 0), ("ShareAcknowledge", 0)}


def layouts() -> list[Layout]:
    """Every response with a throttle time."""
    return [
        (api.name, version)
        for api in API
        for version in range(api.versions.first, api.versions.last + 1)
        if any(f.name == FIELD and version in f.versions for f in api.response)
    ]


def heeded_in(kafka: str) -> dict[Layout, bool]:
    """What one release says of the layouts that it reads."""
    lines = "".join(
        f"{API[name].key} {version} {encode({}, API[name].key, version, 'response').hex()}\n"
        for name, version in layouts()
    )
    said = _run(kafka, "Throttle.java", stdin=lines).split()
    return {of: word == "true" for of, word in zip(layouts(), said, strict=True) if word != "unread"}


def test_clients_heed_a_throttle_time_from_the_version_that_kafka_says() -> None:
    newest, older = map(heeded_in, NEWEST_FIRST)
    kafka = older | newest
    ours = {(name, version): version in version_range(HEEDED.get(name)) for name, version in kafka}
    assert set(layouts()) - kafka.keys() <= UNREAD
    assert len(kafka) > 250
    assert {of: heeded for of, heeded in kafka.items() if heeded != ours[of]} == {}
