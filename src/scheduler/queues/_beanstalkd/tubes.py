"""A tick's tube decides which nodes get it."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, assert_never

from .._queue import Kind, Tick

LONGEST_SUFFIX: Final = len(".at.") + 16


def tube_of(tube: str, kind: Kind, where: str | None = None) -> str:
    """Audits have their own tube, to be counted. A name has at most 200 bytes: labels become a digest."""
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
    plain = tube_of(tube, kind)
    return [each for each in tubes if each == plain or (kind is Kind.RUN and each.startswith(f"{tube}.at."))]
