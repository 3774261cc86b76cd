"""In which tube a tick stands: whom it is for follows from that. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, assert_never

from .._queue import Kind, Tick

LONGEST_SUFFIX: Final = len(".at.") + 16
"""Characters that the name of a tube may have more than the one that the operator gave."""


def tube_of(tube: str, kind: Kind, where: str | None = None) -> str:
    """Return where ticks of that kind stand: audits apart, so that they can be counted, and runs for agents with some
    labels, so that others do not get them. A name has 200 bytes, and labels may have more: so it has a digest of them.
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
    """Return where that tick is to stand."""
    return tube_of(tube, tick.kind, tick.where)


def are_of(tube: str, kind: Kind, tubes: list[str]) -> list[str]:
    """Return those of these tubes in which ticks of that kind stand, for whomever they are."""
    plain = tube_of(tube, kind)
    return [each for each in tubes if each == plain or (kind is Kind.RUN and each.startswith(f"{tube}.at."))]
