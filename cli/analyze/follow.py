"""`klamm analyze --follow`: findings as they come up, until somebody ends it."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from klamm.cli.analyze.summary import STYLES, print_finding
from klamm.cli.analyze.window import window_s
from klamm.cli.tables import print_json
from klamm.pipeline.detectors.detector import Detector
from klamm.pipeline.detectors.finding import Finding, Findings, Thresholds
from klamm.pipeline.report import wording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from klamm.pipeline.detectors.following import Look


def follow(
    spark: SparkSession,
    paths: Sequence[str],
    detectors: Sequence[Detector],
    thresholds: Thresholds,
    arguments: argparse.Namespace,
) -> Findings:
    """All findings that were reported, each in its last state."""
    from klamm.pipeline.detectors.following import follow as followed

    printed = _Printed(paths, detectors, arguments.json)
    with _interrupted() as stopped, _folder(arguments.checkpoint) as folder:
        progress = followed(
            spark,
            paths,
            detectors,
            printed.look,
            stopped,
            folder,
            window_s(arguments.window),
            thresholds,
            keep=arguments.checkpoint is not None,
        )
    printed.end(progress.requests, progress.lost)
    return printed.found


class _Printed:
    """The lines that were printed."""

    def __init__(self, paths: Sequence[str], detectors: Sequence[Detector], as_json: bool) -> None:
        from rich.console import Console

        self.found = Findings()
        self._paths, self._json = paths, as_json
        self._detectors = {one.name: one for one in detectors}
        self._console = Console(highlight=False)

    def look(self, look: Look) -> None:
        from klamm.pipeline.report.gathering import evidence_exchanges, lean

        for name in look.found.failed.keys() - self.found.failed.keys():
            print(f"klamm: the detector {name} failed: {look.found.failed[name]}", file=sys.stderr)
        self.found.failed |= look.found.failed
        if not look.news:
            return
        seen = evidence_exchanges(lean(look.tables), Findings(look.news))
        for one in look.news:
            self._print(one, [wording.shown(one, each, seen.get(each[1:])) for each in one.evidence])
        sys.stdout.flush()
        self.found.add(Findings(look.news))

    def _print(self, one: Finding, shown: list[wording.Shown]) -> None:
        """`shown`: the exchanges that show each evidence."""
        detector = self._detectors[one.detector]
        commands = [wording.show(self._paths, each) for each in shown]
        if self._json:
            from klamm.pipeline.report.report import finding_object

            evidence = list(zip(one.evidence, shown, commands, strict=True))
            print_json(finding_object(one, detector, evidence))
            return
        from rich.text import Text

        title = Text.assemble((one.severity, STYLES[one.severity]), "  ", (detector.title, "bold"))
        self._console.print(title.append(f"  {one.detector}", "bright_black"))
        print_finding(one, commands[0] if commands else "", "", self._console)
        if detector.settings:
            self._console.print(
                Text.assemble("  ", ("change ", "green"), ", ".join(detector.settings)), soft_wrap=True
            )

    def end(self, requests: int, lost: int) -> None:
        """The summary."""
        if self._json:
            return
        by = [f"{count} {severity}" for severity in STYLES if (count := self._count(severity))]
        gaps = f"; {wording.count(lost, 'frame is', 'frames are')} missing" if lost else ""
        print(f"\n{wording.count(requests, 'request')} read{gaps}; findings: {', '.join(by) or 'none'}")

    def _count(self, severity: str) -> int:
        latest = {
            (one.detector, one.cluster, one.client_id, one.subject): one.severity for one in self.found.found
        }
        return sum(one == severity for one in latest.values())


@contextmanager
def _interrupted() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed, or the process is to end."""
    asked: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: asked.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _folder(named: str | None) -> Iterator[Path]:
    """The folder in which the stream keeps its position."""
    with ExitStack() as stack:
        folder = Path(
            named or stack.enter_context(TemporaryDirectory(prefix="klamm-", ignore_cleanup_errors=True))
        )
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
