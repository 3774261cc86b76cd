"""Notes of runs without room: the full limit, and the runs that held its units."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, overload

from attrs import frozen

from .._plan import instant_of, us_of
from .._values import cut

LATE: Final = 0.1
"""Seconds. A run that waits no longer for room keeps no note of that."""

MOST_HOLDERS: Final = 3

LONGEST_NAME: Final = 256


@frozen(kw_only=True)
class Holder:
    """A run that holds units of a limit. `due`: its tick. `since`: when the run began, or at the latest when it got the
    units.
    """

    job_id: str
    due: datetime
    since: datetime
    units: int


@frozen(kw_only=True)
class Waited:
    """A note of a run that had no room. `at`: when it began to wait for room, or was missed.

    `run`: the due instant of an earlier run of its job, which had not ended; then the rest is empty.

    `limit`: the full limit; None: all places of the scheduler were taken. `size`: its units; None: no bound. `holders`:
    the runs that had held units for longest, and `others`: how many more held some. `resting`: units of a rate that
    rested after earlier runs. `elsewhere`: units that other nodes had, or that no node had been lent. `ahead`: how many
    runs with the same needs waited already. `after`: the run whose end made room at last; None: it has not, or
    something else did.
    """

    at: datetime
    run: datetime | None = None
    limit: str | None = None
    size: float | None = None
    holders: tuple[Holder, ...] = ()
    others: int = 0
    resting: int = 0
    elsewhere: int = 0
    ahead: int = 0
    after: Holder | None = None


@overload
def waited_text(waited: None) -> None: ...


@overload
def waited_text(waited: Waited | None) -> str | None: ...


def waited_text(waited: Waited | None) -> str | None:
    """Write it for a store, in ASCII. Counts of 0 are left out."""
    if waited is None:
        return None
    if waited.run is not None:
        return json.dumps({"at": us_of(waited.at), "run": us_of(waited.run)}, separators=(",", ":"))
    held = [*map(_written, waited.holders)]
    counts: dict[str, Any] = {name: count for name in _COUNTS if (count := getattr(waited, name))}
    limit = None if waited.limit is None else cut(waited.limit, LONGEST_NAME)
    if waited.after is not None:
        counts["after"] = _written(waited.after)
    found = {"at": us_of(waited.at), "limit": limit, "size": waited.size, "held": held, **counts}
    return json.dumps(found, separators=(",", ":"))


def waited_of(text: str | None) -> Waited | None:
    """Read what a store has. None: nothing, or nothing that makes sense."""
    if text is None:
        return None
    try:
        return _read(json.loads(text))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _read(found: Any) -> Waited | None:
    if not isinstance(found, Mapping):
        return None
    if "run" in found:
        return Waited(at=instant_of(found["at"]), run=instant_of(found["run"]))
    held = tuple(map(_holder, found["held"][:MOST_HOLDERS]))
    after = None if "after" not in found else _holder(found["after"])
    at, limit, size = instant_of(found["at"]), found["limit"], found["size"]
    counts: dict[str, Any] = {name: int(found.get(name, 0)) for name in _COUNTS}
    name, units = None if limit is None else str(limit), None if size is None else float(size)
    return Waited(at=at, limit=name, size=units, holders=held, after=after, **counts)


def _written(holder: Holder) -> list[Any]:
    return [cut(holder.job_id, LONGEST_NAME), us_of(holder.due), us_of(holder.since), holder.units]


def _holder(found: Any) -> Holder:
    job_id, due_us, since_us, units = found
    return Holder(job_id=str(job_id), due=instant_of(due_us), since=instant_of(since_us), units=int(units))


_COUNTS: Final = ("others", "resting", "elsewhere", "ahead")
