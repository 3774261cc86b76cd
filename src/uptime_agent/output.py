"""The output of commands."""

# ruff: noqa: PLC0415 - as in cli.py

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, NoReturn

import click

if TYPE_CHECKING:
    from scheduler import Record

    from .config import Config, StorePlace
    from .toml import Problem

FAILED: Final = 1
BAD_USAGE: Final = 2

AT_ONCE: Final = 100


def config_or_end(read: Callable[[], Config]) -> Config:
    """Read a configuration, or end with its problems."""
    from .toml import ConfigError

    try:
        return read()
    except ConfigError as exc:
        end(str(exc), BAD_USAGE)


def records_or_end(place: StorePlace, targets: Sequence[str | None], limit: int) -> list[list[Record]]:
    """Read `limit` records of each target (None: of all), or end. Another process may have the store open."""
    import anyio

    from scheduler import Scheduler, StoreError

    async def read() -> list[list[Record]]:
        scheduler = Scheduler(store=made)
        return [await scheduler.history(target, limit=limit) for target in targets]

    try:
        made = place.make()
        if made is None:
            raise click.UsageError("there is no history: memory ends with its process")
        try:
            return anyio.run(read)
        finally:
            made.close()
    except StoreError as exc:
        refuse(place, str(exc))


def refuse(place: StorePlace, reason: str, advice: str = "") -> NoReturn:
    """End with a line about a store, without secrets. A long reason is cut, the advice never."""
    from .text import Redactor, printable

    clean = Redactor(place.secrets).clean
    end(f"cannot use the store: {printable(clean(reason))}{clean(advice)}", BAD_USAGE)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, while they have a reader."""
    from .text import harmless

    written = map(harmless, lines)
    try:
        while some := list(islice(written, AT_ONCE)):
            click.echo("\n".join(some))
    except BrokenPipeError:
        sys.exit(0)
    except OSError as exc:
        end(f"cannot write the output: {(exc.strerror or str(exc)).lower()}", FAILED)


def end(reason: str, code: int) -> NoReturn:
    """End with a reason on standard error."""
    from .text import harmless

    with suppress(OSError):
        click.echo("\n".join(map(harmless, reason.split("\n"))), err=True)
    sys.exit(code)


def why_none(target: str, names: Sequence[str] | None) -> str:
    """Say why a target has no history. `names`: of checks, if known."""
    from difflib import get_close_matches

    if names is None:
        return ""
    if target in names:
        return ": it has not been checked yet"
    similar = get_close_matches(target, names, n=1)
    return f": the configuration has no check of that name{f', did you mean {similar[0]!r}?' if similar else ''}"


def problems_of(text: str) -> Sequence[Problem]:
    """The problems of a configuration that was written for a user."""
    from .config import parse_config
    from .toml import ConfigError

    try:
        parse_config(text, "imported.toml", {}, needs_secrets=False)
    except ConfigError as exc:
        return exc.problems
    return ()
