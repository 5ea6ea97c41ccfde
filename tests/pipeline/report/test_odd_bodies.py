"""Bodies that do not end as their layouts do, in the page of a report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from klamm.decoders import encode
from klamm.pipeline.report.gathering import lean
from klamm.pipeline.report.gathering_bodies import MOST, OddBodies
from klamm.pipeline.report.page import page
from klamm.pipeline.tables import Tables
from tests.captures.rows import Talk, connection, in_time, written
from tests.pipeline.report.reports import SCRIPT, report, summed_up

BEAT = {"group_id": "billing", "generation_id": 1, "member_id": "m"}
OF_VERSION_1 = bytes.fromhex("00000000 001b")
REASON = "the body at byte 2: 4 bytes left over; the layouts of versions 1, 2, 3 fit"
REFUSED = encode({"error_code": 35, "api_keys": []}, "ApiVersions", 0, "response")
HEADING = "<h2>Bodies that do not end as their layouts do</h2>"


def test_the_page_counts_them_by_layout_client_and_broker_with_the_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two answers in another version's layout to one client, one to another; a refusal, in that of version 0,
    and an answer of which only the size was kept are none.
    """
    app, other = Talk(connection(1)), Talk(connection(2, broker="2"), client_id=SCRIPT)
    for talk in (app, app, other):
        talk.exchange("Heartbeat", 0, BEAT, OF_VERSION_1)
    app.heartbeat().exchange("ApiVersions", 4, {"client_software_name": "app"}, REFUSED)
    app.exchange("Heartbeat", 0, BEAT, OF_VERSION_1)
    app.rows[-1] = app.rows[-1]._replace(frame=None)
    tables = Tables(spark, str(written(tmp_path / "a.arrow", in_time(app, other))), persist=True)
    traffic = summed_up(tables, lean(tables))
    assert traffic.odd_bodies == [
        OddBodies("Heartbeat", 0, "response", "main", "1", "app", 2, REASON),
        OddBodies("Heartbeat", 0, "response", "main", "2", SCRIPT, 1, REASON),
    ]
    text = page(report(traffic=traffic), "1.2")
    section = text[text.index(HEADING) : text.index("<footer>")]
    rows = [re.sub(r"<[^>]*>", " ", row).split() for row in re.findall(r"<tr>(?!<th).*?</tr>", section)]
    assert rows[0] == ["Heartbeat", "v0", "response", "app", "1", "2", *REASON.split()]
    assert rows[1][-len(REASON.split()) - 2 :] == ["2", "1", *REASON.split()]
    assert SCRIPT not in text


@pytest.mark.parametrize("kinds", [MOST, MOST + 1])
def test_where_there_are_too_many_kinds_the_page_says_that_there_are_others(kinds: int) -> None:
    traffic = report().traffic
    traffic.odd_bodies = [
        OddBodies("Heartbeat", 0, "response", "kafka", "1", f"app-{number}", 9, REASON)
        for number in range(kinds)
    ]
    text = page(report(traffic=traffic), "1.2")
    assert text.count(REASON) == MOST
    assert ("and others that came less often" in text) is (kinds > MOST)


def test_a_page_without_such_bodies_has_no_word_of_them() -> None:
    assert HEADING not in page(report(), "1.2")
