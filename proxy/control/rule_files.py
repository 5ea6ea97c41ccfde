"""Reads rule files at the start, and again when they change, whole or not at all."""

from __future__ import annotations

import asyncio
import time
from secrets import randbelow

from klamm.proxy.config import Rules
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.log.events import Events
from klamm.rules.engine import Engine
from klamm.rules.file.presence import unmet
from klamm.rules.file.rule_file import RuleFile, load
from klamm.settings.mistakes import ConfigError
from klamm.settings.watched_files import WatchedFiles, identities

LOOK_S = 0.5  # between two checks of the files; a change is read once two checks agree
SHOWN = 3  # mistakes in one line of the log
SEEDS = 2**32


class RuleReload:
    """Raises ConfigError if the rules have mistakes at the start. Without settings there are no rules."""

    def __init__(self, settings: Rules | None, log: Events) -> None:
        self.settings, self.log = settings, log
        self.source = ""
        self.plugins: tuple[str, ...] = ()  # files whose actions the rules use
        self.unmet: set[tuple[str, str]] = set()  # (rule, reason) that have been logged
        self.seen: object = None  # the rules and nodes of the last check
        self.watched = WatchedFiles(())
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
        """Does the file on disk have mistakes? None if there is no file."""
        return None if self.settings is None else self.book.rule_file.rejected is not None

    def summary(self) -> str:
        """One line for people; empty if there are no rules."""
        if not self.source:
            return ""
        return f"rules: {len(self.book.file)} from {self.source}, seed {self.engine.seed}"

    async def follow(self) -> None:
        """Check the files, and log rules that failed or ended, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.tell_failures()
            self.tell_unmet()
            self.log.settle()
            for name in self.book.expire():
                self.log.event("rule_ended", f"the rule {name}, made by hand, has ended", rule=name)
            if self.watched.changed():
                try:
                    await self.reload()
                except Exception as wrong:  # an error in klamm: rules by hand must end all the same
                    message = f"the rules stay as they were, for an error in klamm: {wrong!r}"
                    self.log.event(
                        "rules_rejected", message, "error", per=str(self.watched.read), file=self.source
                    )

    async def reload(self) -> None:
        """Read the files again; with mistakes the rules stay as they are."""
        assert self.settings is not None
        found = await asyncio.to_thread(self._read, self.settings)
        if found.mistakes:
            texts = [str(mistake) for mistake in found.mistakes]
            more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
            message = f"the rules stay as they were: {'; '.join(texts[:SHOWN])}{more}"
            self.book.reject(found)
            self.log.event("rules_rejected", message, "error", per=str(self.watched.read), file=found.source)
        else:
            self._take(found)

    def tell_failures(self) -> None:
        """Log the exceptions of actions, once a minute for each rule."""
        failed = self.engine.failed[:]
        del self.engine.failed[: len(failed)]
        for rule, why in failed:
            message = f"the rule {rule} failed: {why}" if rule else f"a rule failed: {why}"
            self.log.event("rule_failed", message, "error", per=rule, rule=rule)

    def tell_unmet(self) -> None:
        """Log rules that name clusters or brokers that do not exist: once the nodes are known, and once until
        it changes.
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
        before = identities((settings.file, *settings.plugins, *self.watched.read))
        found = load(settings.file, settings.plugins, time.time_ns())
        # also after mistakes: each of these files may be the one to correct
        self.watched = WatchedFiles(found.files, before)
        return found

    def _take(self, found: RuleFile) -> None:
        self.source, self.plugins = found.source, found.files[1:]
        for name in self.book.of_file(found):
            self.log.event(
                "rule_replaced", f"{found.source} has a rule {name} now: the one by hand ends", rule=name
            )
        self.log.event("rules_loaded", self.summary(), rules=len(found.rules), seed=self.engine.seed)
        for warning in found.warnings:
            self.log.event("rule_doubt", str(warning), "warning", per=str(warning))
