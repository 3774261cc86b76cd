"""A worker: it runs what is due from a queue."""

# ruff: noqa: PLC0415 - as in cli.py

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..options import Duration, HistoryPlace, Tasks, tasks_or_end
from ..output import BAD_USAGE, end, refuse

if TYPE_CHECKING:
    from scheduler import Scheduler

    from ..config import StorePlace


@click.command()
@click.argument("tasks", metavar="MODULE:NAME")
@click.option(
    "--store", type=HistoryPlace(), required=True, metavar="URL", help='Where the jobs are: "postgresql://...".'
)
@click.option("--queue", required=True, metavar="ADDRESS", help='The beanstalkd: "host:port" or "unix:/path".')
@click.option("--tube", default="timerqueue", show_default=True, help="Its tube, if several fleets share it.")
@click.option("--limit", type=click.IntRange(1), default=500, show_default=True, help="How many runs at a time.")
@click.option("--needs", "limits", multiple=True, metavar="NAME=N", help="Units of a limit that jobs need; repeatable.")
@click.option(
    "--crash-floor",
    type=Duration(),
    default="5m",
    show_default=True,
    help="How long a job rests after a crash.",
)
@click.option("--labels", metavar="NAME=VALUE,...", help='Where it stands, for jobs with `where`: "region=eu,zone=a".')
@click.option("--name", help="What the others call this worker. [default: its process and host]")
@click.option("--grace", type=Duration(), default="30s", show_default=True, help="How long runs may go on at the end.")
@click.pass_obj
def worker(  # noqa: PLR0917 - the options, in their order
    verbosity: int,
    tasks: str,
    store: StorePlace,
    queue: str,
    tube: str,
    limit: int,
    limits: Sequence[str],
    crash_floor: float,
    labels: str | None,
    name: str | None,
    grace: float,
) -> None:
    """Run jobs of a store that stand in a beanstalkd. Any number of workers may do so.

    MODULE:NAME is a mapping in your Python module, from names of tasks to functions. Your programs add the jobs. Other
    workers run jobs of other tasks, and jobs for nodes with other labels. Ends by Ctrl-C or SIGTERM.
    """
    import anyio

    from scheduler import SchedulerError, StoreError

    from ..logs import log_to_stderr
    from ..text import Redactor

    log_to_stderr(verbosity, Redactor(store.secrets))
    found = tasks_or_end(tasks)
    try:
        options = {"limit": limit, "limits": _limits(limits), "crash_floor": crash_floor}
        of_node = {"name": name, "labels": _labels(labels)}
        made = partial(_scheduler, store, queue, found, tube=tube, of_node=of_node, options=options)
        anyio.run(_serve, made, grace, len(found))
    except StoreError as exc:
        refuse(store, str(exc))
    except (SchedulerError, ModuleNotFoundError) as exc:
        end(str(exc), BAD_USAGE)


def _limits(texts: Sequence[str]) -> dict[str, float]:
    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not name or not number.isdecimal():
            end(f"--needs: {text!r} is no limit; write NAME=N, such as http=200", BAD_USAGE)
        found[name] = float(number)
    return found


def _labels(text: str | None) -> Mapping[str, str]:
    from scheduler.stores import labels_of

    try:
        return {} if text is None else labels_of(text)
    except ValueError as exc:
        end(f"--labels: {exc}; write NAME=VALUE, such as region=eu,zone=a", BAD_USAGE)


def _scheduler(
    place: StorePlace,
    queue: str,
    tasks: Tasks,
    *,
    tube: str,
    of_node: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Scheduler:
    from scheduler import Scheduler
    from scheduler.queues.beanstalkd import BeanstalkdQueue
    from scheduler.stores.postgres import PostgresStore

    place = place.of_programs()
    if place.dsn is None:
        end('--store: workers share a store in PostgreSQL, "postgresql://..."', BAD_USAGE)
    made = Scheduler(
        **options,
        store=PostgresStore(place.dsn, schema=place.schema, shared=True, **of_node),
        queue=BeanstalkdQueue(queue, tube=tube),
    )
    for each, func in tasks.items():
        made.register(each, func)
    return made


async def _serve(make: Callable[[], Scheduler], grace: float, tasks: int) -> None:
    """A second signal cuts off what still runs."""
    import anyio

    from scheduler import SchedulerStarted

    from ..signals import listen_to_signals

    scheduler = make()

    def stop() -> None:
        click.echo(f"takes nothing more; runs have {grace:g} s to end, and another signal cuts them off")
        scheduler.stop(grace=grace)

    async with anyio.create_task_group() as group:
        await group.start(
            listen_to_signals,
            stop,
            group.cancel_scope.cancel,
            lambda: None,  # there is nothing to be read again
        )
        scheduler.listen(lambda _: click.echo(f"a worker with {tasks} tasks takes what is due"), SchedulerStarted)
        await scheduler.run()
        group.cancel_scope.cancel()
