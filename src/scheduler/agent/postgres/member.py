"""Members of a fleet: a target with the way to it, and what is known of it by now."""

from __future__ import annotations

from collections import Counter
from logging import getLogger

from attrs import define, field

from schedule import Schedule

from .budget import Budget
from .contract import Failure, OutcomeKind, ProbeOutcome, Row
from .databases import Databases
from .identity import Key, changes, key_of
from .reach import Reach
from .target import PostgresTarget

logger = getLogger(__name__)


@define(eq=False)
class Member:
    """A target as it is probed: the way to it, its databases, and what we cost it.

    `usual`: the schedules of the probes that run more often by a burst, which lasts until `burst_until`, monotonic
    seconds. `identity`: which server it is, as it was found last; `key`: what that one alone has; `key_before`: what it
    had. `ends`: how many outcomes there were of each kind. `told`: the failures that the log knows of.
    """

    target: PostgresTarget
    reach: Reach
    databases: Databases
    budget: Budget
    usual: dict[str, Schedule] = field(factory=dict)
    burst_until: float = 0.0
    identity: Row | None = None
    key: Key | None = None
    key_before: Key | None = None
    ends: Counter[OutcomeKind] = field(factory=Counter)
    told: dict[tuple[str, str | None], str | None] = field(factory=dict)

    @property
    def has_failed(self) -> bool:
        """Whether a probe has failed here: not one that was skipped, which has its reason."""
        return bool(self.ends[OutcomeKind.FAILED])

    def summary(self) -> str:
        """Say in a line what became of the probes."""
        parts = [f"{self.ends[kind]:,} {kind.value}" for kind in OutcomeKind if self.ends[kind]]
        return f"{self.target.name}: {', '.join(parts) or 'no probe was run'}"

    def is_same_as(self, other: Member) -> bool:
        """Whether both lead to one server: by their addresses, or by what it says of itself.

        After a restart one of them hears of it first. Until the other has, what it was before counts as well.
        """
        here, there = self.target.server, other.target.server
        if (here.host.lower(), here.port) == (there.host.lower(), there.port):
            return True
        ours, theirs = ({self.key, self.key_before}, {other.key, other.key_before})
        return bool(({self.key} & theirs | ours & {other.key}) - {None})

    def identify(self, identity: Row) -> bool:
        """Take note of which server it is, and tell what has happened to it. Whether it is another one than before."""
        for text in changes(self.identity, identity):
            logger.info("%s: %s", self.target.name, text)
        self.identity, before, key = identity, self.key, key_of(identity)
        if key == before:
            return False
        self.key, self.key_before = key, before
        return True

    def tell(self, outcome: ProbeOutcome) -> None:
        """Log a failure, and its end, once; a server that cannot be reached once for all of its probes."""
        if outcome.kind is OutcomeKind.SKIPPED:
            return
        is_of_server = outcome.failure is Failure.CONNECT
        name = None if outcome.failure is None else outcome.failure.value
        self._tell("", None, name if is_of_server else None, outcome.reason)
        if not is_of_server:
            self._tell(outcome.probe, outcome.database, name, outcome.reason)

    def _tell(self, probe: str, database: str | None, failure: str | None, reason: str | None) -> None:
        if self.told.get((probe, database)) == failure:
            return
        what = f"{self.target.name}: {probe or 'the server'}" + (f" in {database}" if database else "")
        if failure is None:
            del self.told[probe, database]
            logger.warning("%s works again", what)
        else:
            self.told[probe, database] = failure
            logger.warning("%s fails (%s): %s", what, failure, reason)
