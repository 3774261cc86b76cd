"""Commands about PostgreSQL fleets. Each imports what it needs when it runs, as all commands do."""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import BAD_USAGE, FAILED, config_or_end, end, print_lines

if TYPE_CHECKING:
    from .config import Config


def _read(file: Path) -> Config:
    from .config import read_config

    return config_or_end(lambda: read_config(file, os.environ))


@click.command()
@click.argument("target")
@click.argument("file", type=click.Path(path_type=Path))
def doctor(target: str, file: Path) -> None:
    """Run each probe once on TARGET, a [[postgres]] of FILE, and say what works and what is missing.

    Exit code 1 if a probe that is on does not work.
    """
    from .checkup import check_up

    try:
        lines, is_well = check_up(_read(file), target)
    except LookupError as exc:
        end(str(exc), BAD_USAGE)
    print_lines(lines)
    sys.exit(0 if is_well else FAILED)


@click.command()
@click.argument("target")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per probe.")
def explain(target: str, file: Path, *, as_json: bool) -> None:
    """Say for each probe of TARGET, a PostgreSQL server of FILE, which scope gives which value.

    Scopes lie within one another: the server, [probes] of the file, and what is built in. The innermost one that sets a
    value has the last word.
    """
    from .probing import explained, explained_in_json, server_of

    config = _read(file)
    try:
        found = server_of(config, target)
    except LookupError as exc:
        end(str(exc), BAD_USAGE)
    print_lines((explained_in_json if as_json else explained)(found, config))
