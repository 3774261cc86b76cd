"""Types of command line values."""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .output import BAD_USAGE, end

if TYPE_CHECKING:
    from datetime import datetime

    from .config import StorePlace


class Duration(click.ParamType[float]):
    """A duration above zero, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read seconds."""
        from .toml import Unfit, seconds

        try:
            return seconds(value)
        except Unfit as exc:
            self.fail(str(exc), param, ctx)


class Instant(click.ParamType[str]):
    """An instant with its offset from UTC."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read an instant."""
        from datetime import datetime

        try:
            found = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            found = None
        if found is None or found.tzinfo is None:
            self.fail(f"expected an instant with its offset, such as 2026-01-31T09:00:00Z, found {value!r}", param, ctx)
        return found.isoformat()


class HistoryPlace(click.ParamType["StorePlace"]):
    """A store. Files are relative to the working directory."""

    name = "store"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> StorePlace:
        """Read a store's URL."""
        from .config import store_place
        from .toml import Unfit

        try:
            return store_place(Path(), os.environ)(value)
        except Unfit as exc:
            self.fail(str(exc), param, ctx)


class Zone(click.ParamType[str]):
    """An IANA time zone name."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read a name."""
        from zoneinfo import ZoneInfo

        try:
            return ZoneInfo(value).key
        except (KeyError, ValueError, OSError):
            self.fail(f"there is no zone {value!r}: use an IANA name such as UTC or Europe/Berlin", param, ctx)


def now_here() -> datetime:
    """This machine's time, in UTC."""
    from datetime import UTC, datetime

    from timerqueue import SystemClock

    return datetime.fromtimestamp(SystemClock().wall(), UTC)


def loaded_or_end(text: str, what: str, example: str) -> Any:
    """Import MODULE:NAME, also from the working directory, or end with the reason."""
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        end(f"no {what}: {text!r}; write MODULE:NAME, such as {example}", BAD_USAGE)
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = import_module(module)
    except ImportError as exc:
        end(f"no {what}: {module} cannot be imported: {exc}", BAD_USAGE)
    for each in name.split("."):
        found = getattr(found, each, None)
    return found


Tasks = Mapping[str, Callable[..., Any]]
"""Functions by their names in a store."""


def tasks_or_end(text: str) -> Tasks:
    """Import the mapping, or end with the reason."""
    tasks = loaded_or_end(text, "tasks", "myapp.jobs:TASKS")
    if not isinstance(tasks, Mapping) or not tasks or not all(isinstance(each, str) for each in tasks):
        end(f"no tasks: {text} is {tasks!r:.100}; make it a dict from names to functions", BAD_USAGE)
    return tasks
