"""The rules in force: read at the start, and again, whole or not at all, when their files change."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from secrets import randbelow

from klamm.proxy.config import Rules
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.log.events import Events
from klamm.rules.engine import Engine
from klamm.rules.file.presence import unmet
from klamm.rules.file.rule_file import RuleFile, load
from klamm.settings.typed_yaml import ConfigError

LOOK_S = 0.5  # between two looks at the files; a change is taken once two looks see the same
SHOWN = 3  # mistakes in one line of the log
SEEDS = 2**32

Identities = dict[str, tuple[int, ...] | None]  # file -> what changes when it does


class RuleReload:
    """Raises ConfigError where the rules have mistakes at the start. Without settings there are no rules."""

    def __init__(self, settings: Rules | None, log: Events) -> None:
        self.settings, self.log = settings, log
        self.source = ""
        self.unmet: set[tuple[str, str]] = set()  # (rule, reason) that the log has said
        self.seen: object = None  # the rules and nodes of the last look
        self.loaded: Identities = {}
        self.waiting: Identities = {}
        seed = settings.seed if settings is not None else 0
        found = None
        if settings is not None:
            found = self._read(settings)
            if found.mistakes:
                raise ConfigError(found.mistakes)
            seed = found.seed if seed is None else seed
        chosen = randbelow(SEEDS) if seed is None else seed
        self.engine = Engine(chosen, time.time_ns() - time.monotonic_ns())
        self.book = RuleBook(self.engine)
        if found is not None:
            self._take(found)

    @property
    def rejected(self) -> bool | None:
        """Does the file on disk have mistakes? None where there is no file."""
        return None if self.settings is None else self.book.rule_file.rejected is not None

    def said(self) -> str:
        """One line for people; nothing where there are no rules."""
        if not self.source:
            return ""
        return f"rules: {len(self.book.file)} from {self.source}, seed {self.engine.seed}"

    async def follow(self) -> None:
        """Look at the files, and say what failed, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.tell_failures()
            self.tell_unmet()
            self.log.settle()
            for name in self.book.expire():
                self.log.event("rule_ended", f"the rule {name}, made by hand, has ended", rule=name)
            if self.changed():
                await self.reload()

    def changed(self) -> bool:
        """Is there something new, that was the same at the last look?"""
        now = {file: _identity(file) for file in self.loaded}
        settled, self.waiting = now == self.waiting, now
        return settled and now != self.loaded

    async def reload(self) -> None:
        """Read the files again; with mistakes the rules stay as they are."""
        assert self.settings is not None
        found = await asyncio.to_thread(self._read, self.settings)
        if found.mistakes:
            texts = [str(mistake) for mistake in found.mistakes]
            more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
            message = f"the rules stay as they were: {'; '.join(texts[:SHOWN])}{more}"
            self.book.reject(found)
            self.log.event("rules_rejected", message, "error", per=str(self.loaded), file=found.source)
        else:
            self._take(found)

    def tell_failures(self) -> None:
        """What actions raised, in the log: once a minute for each rule."""
        failed = self.engine.failed[:]
        del self.engine.failed[: len(failed)]
        for rule, why in failed:
            message = f"the rule {rule} failed: {why}" if rule else f"a rule failed: {why}"
            self.log.event("rule_failed", message, "error", per=rule, rule=rule)

    def tell_unmet(self) -> None:
        """Rules that name clusters or brokers that are not there, in the log: when that is known, and each
        once for as long as it is so.
        """
        known = self.book.known()
        if self.seen == (self.engine.revision, known):
            return
        self.seen = self.engine.revision, known
        rules = [rule for rule in self.book.engine_rules() if rule.enabled]
        found = {(rule.name, f"{at[0]}: {reason}") for rule in rules for at, reason in unmet(rule, known)}
        for rule, reason in sorted(found - self.unmet):
            message = f"the rule {rule} acts nowhere, or where it is not meant to: {reason}"
            self.log.event("rule_doubt", message, "warning", per=(rule, reason), rule=rule)
        self.unmet = found

    def _read(self, settings: Rules) -> RuleFile:
        known = (settings.file, *settings.plugins, *self.loaded)
        before = {file: _identity(file) for file in known}
        found = load(settings.file, settings.plugins, time.time_ns())
        # with mistakes, too: any of these files may be what has to be corrected
        self.loaded = self.waiting = {file: before.get(file) or _identity(file) for file in found.files}
        return found

    def _take(self, found: RuleFile) -> None:
        self.source = found.source
        for name in self.book.of_file(found):
            self.log.event(
                "rule_replaced", f"{found.source} has a rule {name} now: the one by hand ends", rule=name
            )
        self.log.event("rules_loaded", self.said(), rules=len(found.rules), seed=self.engine.seed)
        for warning in found.warnings:
            self.log.event("rule_doubt", str(warning), "warning", per=str(warning))


def _identity(file: str) -> tuple[int, ...] | None:
    """Changes whenever a file, or what a link leads to, does; None where there is none."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
