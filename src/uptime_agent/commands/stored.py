"""Jobs out of a store, for commands whose agent does not answer. What only a running agent knows is missing."""

# ruff: noqa: PLC0415 - as in cli.py

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..output import FAILED, config_or_end, end, records_or_end, refuse

if TYPE_CHECKING:
    from scheduler.stores import StoredJob, StoredState

    from ..config import StorePlace

STORED = "stored"
"""The state of a job whose agent does not answer."""


def store_of(file: Path) -> StorePlace | None:
    """Return the store of a configuration. None: memory, which ends with its process."""
    from ..config import read_config

    place = config_or_end(lambda: read_config(file, os.environ, needs_secrets=False)).store
    return None if place.file is None and place.dsn is None else place


def stored_jobs(place: StorePlace, query: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
    """Return the jobs that a query asks for, in the order of their ids."""
    if "state" in query:
        end("the state of a job is known to a running agent only: leave --state out", FAILED)
    found = sorted((_view(row, state) for row, state in _read(place)), key=lambda job: str(job["id"]))
    return [job for job in found if _is_asked(job, query)][:limit]


def stored_job(place: StorePlace, id: str) -> list[dict[str, Any]]:
    """Return one job, or end."""
    found = [_view(row, state) for row, state in _read(place) if row.id == id]
    if not found:
        end(f"there is no job {id!r:.200} in {place}", FAILED)
    return found


def stored_history(place: StorePlace, id: str, limit: int) -> list[dict[str, Any]]:
    """Return records of a job, latest first."""
    from scheduler import to_json

    (found,) = records_or_end(place, [id], limit)
    return [to_json(each) for each in found]


def stored_why(place: StorePlace, id: str, at: str | None) -> list[dict[str, Any]]:
    """Say why a job did or did not run, as the store knows it, or end."""
    from scheduler import StoreError, to_json

    try:
        return [to_json(place.why(id, None if at is None else datetime.fromisoformat(at)))]
    except StoreError as exc:
        refuse(place, str(exc))


def _read(place: StorePlace) -> list[tuple[StoredJob, StoredState | None]]:
    from scheduler import StoreError

    try:
        return place.stored_jobs()
    except StoreError as exc:
        refuse(place, str(exc))


def _is_asked(job: Mapping[str, Any], query: Mapping[str, Any]) -> bool:
    spec = job["spec"]
    text = str(query.get("q", "")).lower()
    return (
        all(tag in spec["tags"] for tag in query.get("tag", ()))
        and query.get("owner") in {None, spec["owner"] or "code"}
        and any(text in str(each).lower() for each in (job["id"], spec["name"] or "", *spec["tags"]))
    )


def _view(row: StoredJob, state: StoredState | None) -> dict[str, Any]:
    options = _json(row.options, {})
    spec = {"task": row.task, "schedule": row.schedule, "tags": _json(row.tags, []), "name": row.name}
    spec |= {"args": _json(row.args, []), "kwargs": _json(row.kwargs, {}), "owner": None, **options}
    pauses = [] if row.paused is None else [{"reason": row.paused, "until": _instant(row.paused_until_us)}]
    return {
        "id": row.id,
        "state": STORED,
        "next_start": None if state is None else _instant(state.next_us),
        "pauses": pauses,
        "spec": spec,
        "last_outcome": None if state is None else state.last_outcome,
    }


def _json(text: str, default: Any) -> Any:
    """Rows may have been written by hand."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return default
    return found if isinstance(found, type(default)) else default


def _instant(us: int | None) -> str | None:
    try:
        return None if us is None else datetime.fromtimestamp(us / 1e6, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None
