"""Values of the command line, as click reads them. Each imports what it needs when it reads one."""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from datetime import datetime

    from .config import StorePlace


class Duration(click.ParamType[float]):
    """A duration longer than nothing, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read seconds, or fail with what was expected."""
        from .toml import Unfit, seconds

        try:
            return seconds(value)
        except Unfit as exc:
            self.fail(str(exc), param, ctx)


class Place(click.ParamType["StorePlace"]):
    """A place for history. Files are relative to the working directory."""

    name = "store"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> StorePlace:
        """Read a place, or fail with what was expected."""
        from .config import store_place
        from .toml import Unfit

        try:
            return store_place(Path(), os.environ)(value)
        except Unfit as exc:
            self.fail(str(exc), param, ctx)


class Zone(click.ParamType[str]):
    """A time zone by its IANA name."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read a name, or fail with what was expected."""
        from zoneinfo import ZoneInfo

        try:
            return ZoneInfo(value).key
        except (KeyError, ValueError, OSError):
            self.fail(f"there is no zone {value!r}: use an IANA name such as UTC or Europe/Berlin", param, ctx)


def now_here() -> datetime:
    """The time by the clock of this machine, in UTC."""
    from datetime import UTC, datetime

    from timerqueue import SystemClock

    return datetime.fromtimestamp(SystemClock().wall(), UTC)
