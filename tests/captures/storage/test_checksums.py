"""CRC-32C without its package."""

import subprocess
import sys

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from klamm.captures.storage.checksums import slow_crc32c


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_it_is_what_the_package_gives_in_parts_too(one: bytes, other: bytes) -> None:
    assert slow_crc32c(other, slow_crc32c(one)) == crc32c(one + other) == slow_crc32c(one + other)


WITHOUT = """
import sys
for name in "crc32c msgspec lz4 uvloop re2 aiohttp rich prometheus_client yaml cramjam".split():
    sys.modules[name] = None
from klamm.captures.storage import checksums
from klamm.pipeline.bodies import one_by_one
from klamm.pipeline.reading import frame_rows
print(checksums.CHECKS_COLUMNS, checksums.crc32c(b"123456789") == 0xE3069283)
"""


def test_captures_are_read_without_packages_that_executors_of_spark_may_lack() -> None:
    output = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == ["False", "True"]
