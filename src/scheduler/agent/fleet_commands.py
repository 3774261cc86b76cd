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
    from .tables import TablesUnread

    try:
        lines, is_well = check_up(_read(file), target)
    except (LookupError, TablesUnread) as exc:
        end(str(exc), BAD_USAGE)
    print_lines(lines)
    sys.exit(0 if is_well else FAILED)


@click.command()
@click.argument("target")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per probe.")
def explain(target: str, file: Path, *, as_json: bool) -> None:
    """Say for each probe of TARGET, a PostgreSQL server of FILE, which scope gives which value.

    Scopes lie within one another: the server, its cluster, group and all servers of the tables, [probes] of the file,
    and what is built in. The innermost one that sets a value has the last word.
    """
    from .probing import explained, explained_in_json, server_of
    from .tables import TablesUnread

    config = _read(file)
    try:
        found = server_of(config, target)
    except (LookupError, TablesUnread) as exc:
        end(str(exc), BAD_USAGE)
    print_lines((explained_in_json if as_json else explained)(found, config))


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "owner", metavar="URL", help="Make them as this role; the one of FILE may read them then.")
@click.option("--sql", "as_sql", is_flag=True, help="Print the SQL and make nothing.")
def tables(file: Path, owner: str | None, *, as_sql: bool) -> None:
    """Make the tables that [probes] of FILE names, in a schema of their own, unless they are there.

    They say which PostgreSQL servers are probed, and how. The agent itself only reads them.
    """
    from .libpq import read_dsn
    from .tables import TablesUnread, make_tables, sql_of

    place = _read(file).tables
    if place is None:
        end(f'{file}: [probes] says nothing of tables: add from = "postgresql://USER@HOST/DATABASE"', BAD_USAGE)
    reader = None if owner is None else place.server.user
    if as_sql:
        print_lines(sql_of(place.schema, reader).splitlines())
        return
    try:
        server = place.server if owner is None else read_dsn(owner)
        is_new = make_tables(server, place.schema, reader)
    except (TablesUnread, ValueError) as exc:
        end(str(exc), BAD_USAGE)
    print_lines([f"{place}: {'made' if is_new else 'they are there already'}"])
