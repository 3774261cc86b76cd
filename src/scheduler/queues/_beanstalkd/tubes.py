"""The tube of a tick, which decides the nodes that get it. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, assert_never

from .._queue import Kind, Tick

LONGEST_SUFFIX: Final = len(".at.") + 16
"""The most characters that a tube's name has beyond the operator's name."""


def tube_of(tube: str, kind: Kind, where: str | None = None) -> str:
    """Return the tube for ticks of that kind, and of runs for these labels.

    Audits have a tube of their own, so that they can be counted. A name has at most 200 bytes, and labels may have
    more: so it has a digest of them.
    """
    match kind:
        case Kind.RUN:
            return tube if where is None else f"{tube}.at.{blake2b(_bytes(where), digest_size=8).hexdigest()}"
        case Kind.AUDIT:
            return f"{tube}.audit"
        case _:
            assert_never(kind)


def _bytes(where: str) -> bytes:
    return where.encode("utf-8", "replace")


def tube_for(tube: str, tick: Tick) -> str:
    return tube_of(tube, tick.kind, tick.where)


def are_of(tube: str, kind: Kind, tubes: list[str]) -> list[str]:
    """Return those of `tubes` that hold ticks of that kind, for any labels."""
    plain = tube_of(tube, kind)
    return [each for each in tubes if each == plain or (kind is Kind.RUN and each.startswith(f"{tube}.at."))]
