"""A target's databases, listed at most once a minute."""

from __future__ import annotations

from collections.abc import Sequence
from logging import getLogger
from typing import Final

import anyio

from timerqueue import Clock

from .contract import Column, OutcomeKind, Probe, Scope, Type, Variant
from .reach import ProbeRequest, Result, ServerReach
from .target import PostgresTarget

logger = getLogger(__name__)

AGAIN_AFTER: Final = 60.0
"""Seconds."""

LISTING: Final = Probe(
    name="databases",
    purpose="which databases there are",
    scope=Scope.SERVER,
    every=AGAIN_AFTER,
    columns=(Column("name", Type.TEXT, is_key=True),),
    variants=(
        Variant(
            "/* timerqueue:databases */ SELECT datname FROM pg_catalog.pg_database WHERE datallowconn AND NOT"
            " datistemplate AND pg_catalog.has_database_privilege(oid, 'CONNECT')"
            " ORDER BY datname <> pg_catalog.current_database(), datname"
        ),
    ),
    most_rows=10_000,
)


class Databases:
    """A target's databases. Our own comes first."""

    def __init__(self, target: PostgresTarget, reach: ServerReach, clock: Clock) -> None:
        self.known: tuple[str, ...] = ()
        self.left_out = 0
        self._target = target
        self._reach = reach
        self._clock = clock
        self._at: float | None = None
        self._asking: anyio.Event | None = None
        self._failed: Result | None = None

    def follow(self, target: PostgresTarget) -> None:
        """Use this target's settings."""
        if target.patterns != self._target.patterns:
            self._at = None
        self._target = target

    async def all(self) -> Sequence[str] | Result:
        """Return their names, or why they are unknown."""
        now = self._clock.monotonic()
        if self._at is not None and now - self._at < AGAIN_AFTER:
            return self.known
        await self._asked(now).wait()
        return self.known if self._failed is None else self._failed

    def _asked(self, now: float) -> anyio.Event:
        if self._asking is not None:
            return self._asking
        asking = self._asking = anyio.Event()
        self._reach.ask(ProbeRequest(LISTING, None, now, now + self._target.wait, self._answered))
        return asking

    def _answered(self, request: ProbeRequest) -> None:
        result = request.result
        assert result is not None
        is_list = result.kind in {OutcomeKind.STORED, OutcomeKind.PARTIAL}
        self._failed = None if is_list else result
        if is_list:
            self._at = self._clock.monotonic()
            self._become(*self._target.wanted([str(name) for (name,) in result.rows]))
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.set()

    def _become(self, names: list[str], left_out: int) -> None:
        if left_out and left_out != self.left_out:
            logger.warning("%s: %d databases are left out (most_databases)", self._target.name, left_out)
        self.known, self.left_out = tuple(names), left_out
