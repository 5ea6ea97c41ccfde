"""The principals that Kafka's DefaultKafkaPrincipalBuilder makes of subjects."""

from base64 import b64decode
from collections.abc import Iterable

from tests.oracle.messages import NEWEST_FIRST, _run


def principals(names: Iterable[bytes]) -> list[str]:
    """Of each Name in DER, by the newest Kafka."""
    lines = _run(NEWEST_FIRST[0], "Principals", stdin="".join(f"{name.hex()}\n" for name in names))
    return [b64decode(line).decode() for line in lines.splitlines()]
