"""Compare the tables with the message schemas of one Kafka: python -m tools.wire_check 4.3.1

Exit code 0: the tables have all that this Kafka has, as it has it, and nothing newer. 1: they differ.
2: that Kafka, or Java, is not to be had.

An older Kafka is held to bytes alone, since the newest words are ours; what docs/early-access.md lists of it
is known.
"""

import sys
from itertools import groupby
from textwrap import fill

from klamm.decoders import API
from klamm.decoders.schema import NONE, Side
from tools.wire_check.check import Finding, Report, check
from tools.wire_check.early_access import EARLY_ACCESS, known_changes
from tools.wire_check.jar import error_codes, fetch, newest_kafka, release
from tools.wire_check.schemas import read_schemas

SAME, DIFFERENT, USAGE = 0, 1, 2
LINE = 150  # characters
SIDES: tuple[Side, ...] = ("request", "response")


def main(arguments: list[str]) -> int:
    """Check each release that is named; without one, the newest that the tests use."""
    try:
        return max([check_release(kafka) for kafka in arguments or [newest_kafka()]])
    except (ValueError, LookupError, RuntimeError) as error:
        print(f"wire-check: {error}", file=sys.stderr)
        return USAGE


def check_release(kafka: str) -> int:
    """Print what one release has to say."""
    older = release(kafka) < release(newest_kafka())
    jar = fetch(kafka)
    report = check(read_schemas(jar), error_codes(jar))
    known = known_changes(kafka)
    findings = report.findings if older else [*report.findings, *report.newer]
    wrong, expected, words = [], [], []
    for finding in sorted(findings, key=lambda finding: (finding.key, finding.side)):
        if finding.bytes and (finding.title, finding.side, finding.versions) in known:
            expected.append(finding)
        elif older and not finding.bytes:
            words.append(finding)
        else:
            wrong.append(finding)
    print_summary(kafka, report, len(wrong), len(expected))
    print_findings(wrong)
    for text in report.declarations:
        print(f"\nto be added to a file of decoders/apis/; its marks are guesses:\n\n{text}")
    if expected:
        print(f"\nchanged since under one version, see {EARLY_ACCESS}:")
        print_findings(expected)
    if words:
        print("\nsaid otherwise by this older Kafka, with the same bytes or as tags that it skips:")
        print_findings(words)
    return DIFFERENT if wrong else SAME


def print_summary(kafka: str, report: Report, wrong: int, expected: int) -> None:
    """Prints the sizes of the comparison."""
    ours = sum(len(SIDES) * (api.versions.last - api.versions.first + 1) for api in API)
    verdict = "1 difference" if wrong == 1 else f"{wrong or 'no'} differences"
    verdict += f" but {expected} known" if expected else ""
    compared = f"{report.compared} of {report.layouts} in the jar compared"
    besides = f"{report.errors} errors, {report.headers} headers"
    print(
        f"Kafka {kafka}: {len(API)} APIs ({report.apis} in this jar),"
        f" {ours} layouts ours, {compared}, {besides}: {verdict}"
    )
    if report.ours_only:
        names = ", ".join(report.ours_only)
        print(f"in the tables only, from other releases ({ours - report.compared} layouts): {names}")


def print_findings(findings: list[Finding]) -> None:
    """A paragraph for each API, a line for each finding."""
    for (key, title, file), group in groupby(findings, lambda f: (f.key, f.title, f.file)):
        number = f" ({key})" if title in API else ""
        print(f"\n  {title}{number}  {file}")
        for finding in group:
            versions = str(finding.versions) if finding.versions != NONE else ""
            where = " ".join(filter(None, (finding.side, versions)))
            print(fill(f"    {where:<15} {finding.text}", LINE, subsequent_indent=" " * 22))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
