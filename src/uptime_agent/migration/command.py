"""`timerqueue import apscheduler`. It imports the rest of the folder, which needs APScheduler."""

# ruff: noqa: PLC0415 - as in ../cli.py

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from ..instants import microseconds
from ..options import HistoryPlace, loaded_or_end, now_here, tasks_or_end
from ..output import BAD_USAGE, FAILED, end, print_lines, refuse

if TYPE_CHECKING:
    from ..config import StorePlace
    from .judging import Judged
    from .old_job import OldJob
    from .triggers import ImportedInstants


@click.command("apscheduler")
@click.argument("scheduler", metavar="MODULE:SCHEDULER")
@click.option(
    "--store", type=HistoryPlace(), metavar="URL", help='Where to put them: "sqlite:///jobs.db", "postgresql://...".'
)
@click.option("--dry-run", is_flag=True, help="Say what would become of each job. Nothing is opened or stored.")
@click.option("--tasks", metavar="MODULE:NAME", help="A dict from names to functions. [default: module.function]")
@click.option("--without", multiple=True, metavar="ID", help="Leave this job out; repeatable.")
def import_jobs(
    scheduler: str, store: StorePlace | None, tasks: str | None, without: Sequence[str], *, dry_run: bool
) -> None:
    """Put the jobs of MODULE:SCHEDULER, an APScheduler 3, into a store.

    Imports your program and runs no job. Stop what uses either store first. All jobs are judged first: if one has no
    counterpart none is stored, and the exit code is 1. A second import changes only what differs. Jobs keep their
    pauses, counts and next starts.
    """
    import anyio

    from scheduler import StoreError

    if store is None and not dry_run:
        raise click.UsageError("say where to put the jobs: --store sqlite:///jobs.db; or try it: --dry-run")
    read, imported = _read(scheduler, frozenset(without))
    from .judging import judged
    from .table import table

    if not read:
        end(f"the scheduler {scheduler} has no jobs", FAILED)
    jobs = anyio.run(judged, read, imported, {} if tasks is None else tasks_or_end(tasks))
    refused = sum(each.why is not None for each in jobs)
    if refused or dry_run or store is None:
        print_lines(table(jobs, {}))
        if refused:
            end(f"{refused} of {len(jobs)} jobs are refused, so none is stored: change them, or --without ID", FAILED)
        return
    try:
        print_lines(table(jobs, _stored(store, jobs)))
    except StoreError as exc:
        refuse(store, str(exc))
    names = sorted({each.row.task for each in jobs if each.row is not None})
    print_lines(["", f"Register these tasks in your program: {', '.join(names)}"])


def _read(text: str, without: frozenset[str]) -> tuple[list[OldJob], ImportedInstants]:
    began = now_here()
    found = loaded_or_end(text, "scheduler", "myapp.jobs:scheduler")
    try:
        from .old_job import Unread, read_jobs
        from .triggers import ImportedInstants
    except ModuleNotFoundError as exc:
        end(f"no scheduler: APScheduler 3.11 is not installed beside this command: {exc}", BAD_USAGE)
    try:
        jobs = read_jobs(found() if callable(found) else found)
    except Unread as exc:
        end(f"no scheduler: {text}: {exc}", BAD_USAGE)
    if unknown := without - {each.id for each in jobs}:
        end(f"--without: there is no job {min(unknown)!r}", BAD_USAGE)
    return [each for each in jobs if each.id not in without], ImportedInstants(began, now_here())


def _stored(place: StorePlace, jobs: Sequence[Judged]) -> dict[str, Any]:
    from .storing import stored

    store = place.of_programs().make()
    if store is None:
        raise click.UsageError("--store: memory ends with this command")
    return dict(stored(store, jobs, microseconds(now_here().timestamp())))


class WithJobs(click.Command):
    """`import` takes another monitor's file or, after the word apscheduler, jobs."""

    commands: ClassVar[Mapping[str, click.Command]] = {"apscheduler": import_jobs}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Pass later arguments to that word's command."""
        if args and (command := self.commands.get(args[0])) is not None:
            return command.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write where the help for jobs is."""
        formatter.write_paragraph()
        formatter.write_text("Jobs of an APScheduler: timerqueue import apscheduler --help")
