"""Every API of Kafka, by key or name: `API[3]`, `API["Metadata"]`; older names are aliases.

How the tables are marked:

    NODE_ID, HOST, PORT  endpoints that clients are told to connect to, and no others
    ERROR                every error code, of whatever part of an answer
    SECRET               SASL tokens, salts and salted passwords, hmacs, configured values and messages that
                         repeat them, forwarded requests
    TELEMETRY            metrics that clients push
    CLIENT_TEXT          what a client makes up and Kafka only carries: its software, client and instance ids,
                         racks, reasons, tags; metadata and assignments for other clients' code
    none                 ids that Kafka acts on and that lack a mark: members, transactional ids, principals
"""

from collections.abc import Iterator
from difflib import get_close_matches

from klamm.decoders.apis import (
    acls,
    brokers,
    configs,
    consumer_groups,
    data,
    groups,
    log_dirs,
    metadata,
    quorum,
    quotas,
    security,
    share_groups,
    share_state,
    streams_groups,
    telemetry,
    topics,
    transactions,
    zookeeper,
)
from klamm.decoders.failures import UnknownApi
from klamm.decoders.schema import NONE, Api

_FAMILIES = (
    metadata, data, groups, consumer_groups, share_groups, share_state, streams_groups, transactions, topics,
    configs, log_dirs, acls, security, quotas, telemetry, quorum, brokers, zookeeper,
)


class Apis:
    """The APIs in order of their keys. Names match in any case, with or without underscores."""

    def __init__(self, apis: list[Api]) -> None:
        self._by_key = {api.key: api for api in sorted(apis, key=lambda api: api.key)}
        self._by_name = {_plain(name): api for api in apis for name in (api.name, *api.aliases)}

    def __getitem__(self, key: int | str) -> Api:
        """Raises UnknownApi, which tells the nearest names."""
        found = self.get(key)
        if found is None:
            raise UnknownApi(f"no API has the key {key}" if isinstance(key, int) else self._unknown(key))
        return found

    def get(self, key: int | str) -> Api | None:
        return self._by_key.get(key) if isinstance(key, int) else self._by_name.get(_plain(key))

    def any(self, key: int) -> Api:
        """The API of this key. One that is not known has no versions, and its key for a name."""
        return self._by_key.get(key) or Api(key, f"API key {key}", NONE, NONE, (), ())

    def __contains__(self, key: int | str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[Api]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def _unknown(self, name: str) -> str:
        near = get_close_matches(_plain(name), self._by_name, n=3)
        hint = ", ".join(dict.fromkeys(self._by_name[one].name for one in near))
        return f"no API is named {name!r}" + (f"; nearest: {hint}" if hint else "")


def _plain(name: str) -> str:
    return name.replace("_", "").casefold()


API = Apis([found for family in _FAMILIES for found in vars(family).values() if isinstance(found, Api)])


def why_unknown(api: Api, version: int) -> str | None:
    """A line on an API or a version that klamm does not know; None where it knows both."""
    if api.key not in API:
        return f"{api.name} is not known"
    return None if version in api.versions else f"{api.name} v{version} is not known, only {api.versions}"
