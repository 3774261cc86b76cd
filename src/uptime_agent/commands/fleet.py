"""Commands about PostgreSQL fleets."""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..options import Duration, now_here
from ..output import BAD_USAGE, FAILED, config_or_end, end, print_lines, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scheduler.queues import Queue

    from ..config import Config, StorePlace


def _read(file: Path) -> Config:
    from ..config import read_config

    return config_or_end(lambda: read_config(file, os.environ))


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[TARGET] FILE")
def doctor(words: tuple[str, ...]) -> None:
    """Run each probe once on TARGET, a [[postgres]] of FILE, and say what works and what is missing.

    Without TARGET say whether a failover of FILE's store, in PostgreSQL, would lose commits: nodes need standbys that
    commits wait for. Exit code 1 if it would, or if a probe that is on does not work.
    """
    from scheduler import StoreError

    from ..tables import TablesUnread
    from .checkup import check_up, check_up_store

    if len(words) > len(("TARGET", "FILE")):
        raise click.UsageError("give a TARGET and the FILE, or the FILE alone")
    *target, file = words
    config = _read(Path(file))
    if not target and config.store.dsn is None:
        end(f"{config.store} is for one process, and no server's: name a TARGET, too", BAD_USAGE)
    try:
        lines, is_well = check_up(config, *target) if target else check_up_store(config.store)
    except (LookupError, TablesUnread) as exc:
        end(str(exc), BAD_USAGE)
    except StoreError as exc:
        refuse(config.store, str(exc))
    print_lines(lines)
    sys.exit(0 if is_well else FAILED)


@click.command()
@click.argument("target")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per probe.")
def explain(target: str, file: Path, *, as_json: bool) -> None:
    """Say for each probe of TARGET, a PostgreSQL server of FILE, which scope gives which value.

    The innermost scope that sets a value decides. From within: the server, its cluster, its group, all servers of the
    tables, [probes] of the file, what is built in.
    """
    from ..probing import explained, explained_in_json, server_of
    from ..tables import TablesUnread

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
    from ..libpq import read_dsn
    from ..tables import TablesUnread, make_tables, sql_of

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


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[TARGET [PROBE]] FILE")
@click.option("--last", type=Duration(), help="Show a window of PROBE, such as 1h, and not its newest sample alone.")
@click.option("--database", help="Only what was found in this database.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, with all columns.")
def metrics(words: tuple[str, ...], last: float | None, database: str | None, *, as_json: bool) -> None:
    """Show what is stored of the PostgreSQL servers of FILE, or what PROBE has found on TARGET.

    Counters are shown as rates, each from the sample before. The agent may run meanwhile.
    """
    from ..postgres import StoreUnavailable
    from ..probing import found_by, found_in_json, found_lines, stock, stock_in_json, stock_lines
    from ..text import Redactor

    if len(words) > len(("TARGET", "PROBE", "FILE")):
        raise click.UsageError("give a TARGET, a PROBE and the FILE, or fewer of them")
    *which, file = words
    target, probe = (*which, None, None)[:2]
    config = _read(Path(file))
    place = config.metrics.beside(config.store)
    if place.file is None and place.dsn is None:
        end("there are no metrics: memory ends with its process", BAD_USAGE)
    store, _ = config.metrics.make(config.store, config.postgres)
    width = max(shutil.get_terminal_size().columns, 40)
    try:
        if target is None or probe is None:
            stored = stock(store, target)
            lines, is_empty = (stock_in_json if as_json else stock_lines)(stored), not stored
        else:
            since = None if last is None else now_here().timestamp() - last
            found, columns = found_by(store, target, probe, since, database)
            lines, is_empty = found_in_json(found) if as_json else found_lines(found, columns, width), not found
    except StoreUnavailable as exc:
        end(f"cannot use the metrics: {Redactor(config.secrets).clean(str(exc))}", BAD_USAGE)
    if is_empty:
        end(f"there is nothing of {' '.join(which) or 'any server'} in {place}", FAILED)
    print_lines(map(Redactor(config.secrets).clean, lines))


@click.command()
@click.argument("where", metavar="FILE|URL")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per node.")
def fleet(where: str, *, as_json: bool) -> None:
    """Show the nodes that share the store of FILE, or the one at URL, and what each of them has.

    Exit code 1 if there is none, or if a lease has ended.
    """
    from scheduler import StoreError
    from scheduler.stores import NoTables

    from ..config import store_place
    from ..show import fleet_in_json, fleet_lines

    place = store_place(Path(), os.environ)(where) if "://" in where else _read(Path(where)).store
    if place.dsn is None:
        end(f"{place} is for one process: nodes share a store in PostgreSQL", BAD_USAGE)
    try:
        view = place.fleet_view()
    except NoTables as exc:
        refuse(place, str(exc), _instead("fleet", place, exc.elsewhere))
    except StoreError as exc:
        refuse(place, str(exc))
    now = now_here()
    print_lines(fleet_in_json(view) if as_json else fleet_lines(view, now))
    is_well = view.agents and all(node.left is None or node.left > 0 for node in view.agents)
    sys.exit(0 if is_well else FAILED)


@click.command()
@click.argument("where", metavar="FILE|URL")
@click.option("--queue", metavar="ADDRESS", help='The beanstalkd in which the jobs stand: "host:port" or "unix:/path".')
@click.option("--tube", default="timerqueue", show_default=True, help="Its tube, if several fleets share it.")
@click.option("--wait", type=Duration(), default="10s", show_default=True, help="How long nodes have to answer.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def audit(where: str, queue: str | None, tube: str, wait: float, *, as_json: bool) -> None:
    """Check that each job of a store has its next start and a node. Mend what is wrong, and say so.

    The store is that of FILE, or the one at URL, in PostgreSQL; with --queue that of your programs. Nodes may run
    meanwhile: it takes nothing over and runs no job. Nodes audit by themselves too, every five minutes. Exit code 1 if
    anything was wrong.
    """
    from scheduler import SchedulerError, StoreError, audit_store
    from scheduler.stores import NoTables

    from ..config import store_place
    from ..show import audit_in_json, audit_lines

    place = store_place(Path(), os.environ)(where) if "://" in where else _read(Path(where)).store
    if place.dsn is None:
        end(f"{place} is for one process, and its agent audits it: name a store in PostgreSQL", BAD_USAGE)
    if queue is not None:
        place = place.of_programs()
    try:
        with place.visited() as store:
            found = audit_store(store, None if queue is None else _to_put_into(queue, tube), wait=wait)
    except NoTables as exc:
        refuse(place, str(exc), _instead("audit", place, exc.elsewhere))
    except StoreError as exc:
        refuse(place, str(exc))
    except ValueError as exc:
        end(f"{exc} (--queue ADDRESS)", BAD_USAGE)
    except (SchedulerError, ModuleNotFoundError) as exc:
        end(str(exc), BAD_USAGE)
    print_lines([audit_in_json(found)] if as_json else audit_lines(found))
    sys.exit(FAILED if found.mended or found.left else 0)


def _instead(command: str, place: StorePlace, schemas: Iterable[str]) -> str:
    """The command for the first schema. Without secrets it can be copied."""
    from urllib.parse import quote

    from ..text import masked

    first, dsn = next(iter(schemas), None), place.dsn or ""
    url = f"{masked(dsn) if place.secrets else dsn}{'&' if '?' in dsn else '?'}schema={quote(first or '')}"
    return "" if first is None else f": timerqueue {command} '{url}'"


def _to_put_into(address: str, tube: str) -> Queue:
    from scheduler.queues.beanstalkd import BeanstalkdQueue

    return BeanstalkdQueue(address, tube=tube, reservers=0)
