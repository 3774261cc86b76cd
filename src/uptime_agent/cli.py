"""The command line. Each command imports what it needs."""

# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from .commands.acts import OF_PEOPLE
from .commands.asking import incidents, limits, why
from .commands.fleet import audit, doctor, explain, fleet, metrics, tables
from .commands.jobs import jobs
from .commands.tokens import token
from .commands.worker import worker
from .migration import WithJobs
from .options import Duration, HistoryPlace, Zone, now_here
from .output import BAD_USAGE, FAILED, config_or_end, end, print_lines, problems_of, records_or_end, refuse, why_none

if TYPE_CHECKING:
    from .config import Config, StorePlace

MOST_OF_UPTIME: Final = 10_000


Command = TypeVar("Command", bound=Callable[..., Any])


STORE: Final = '"sqlite:///FILE", "postgresql://..." or "memory".'

EXIT_CODES: Final = """\b
Exit codes:
  0  a clean end, by Ctrl-C or SIGTERM too
  1  with --once: a target is neither up nor degraded, or a probe has failed
     with history: there is none
     with jobs, limits or incidents: no agent answers, or it refuses
     with an act: the agent refuses; with why: there is no such job
     otherwise: the agent failed, a second Ctrl-C cut it off, another agent has
     taken over its store, or it cannot write its output
  2  called or configured wrongly, or the store cannot be used; nothing was started
"""


def _tell_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001 - click calls it so
    from .text import our_version

    if is_asked and not ctx.resilient_parsing:
        click.echo(f"timerqueue, version {our_version()}")
        ctx.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and exit.",
)
@click.option("-v", "--verbose", count=True, help="Log what the scheduler does. Give it twice to log more.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the lines of the log are written: as text, or as one JSON object each.",
)
@click.pass_context
def cli(ctx: click.Context, verbose: int, log_format: str) -> None:
    """Check websites, ports and databases, on time, and show how they stand."""
    ctx.obj = verbose
    if log_format != "text":
        from .logs import LogFormat, log_as

        log_as(LogFormat(log_format))


def _run_options(command: Command) -> Command:
    for option in (
        click.option("--for", "seconds", type=Duration(), help="Stop after this time, for example 10s."),
        click.option("--once", is_flag=True, help="Check everything once. Exit code 1 if a target is not up."),
        click.option("--plain", is_flag=True, help="Print lines, not a table, even in a terminal."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line."),
        click.option("--store", type=HistoryPlace(), metavar="URL", help=f"Where to remember: {STORE}"),
    ):
        command = option(command)
    return command


@cli.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@_run_options
@click.pass_obj
def run_(verbosity: int, /, file: Path, **options: Any) -> None:
    """Run the checks of a configuration FILE until Ctrl-C.

    The agent remembers past checks in a file next to FILE, unless FILE or --store names another place. With --once it
    remembers no checks, unless --store is given, and metrics where FILE names a store for them.
    """
    from .config import read_config

    def read() -> Config:
        return read_config(file, os.environ)

    _run(config_or_end(read), verbosity, source=(file, read), **options)


class _WithSchemes(click.Command):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        from .checks import known_kinds

        formatter.write_paragraph()
        formatter.write_text(f"Schemes: {', '.join(f'{each}://' for each in known_kinds().by_scheme)}")


@cli.command(cls=_WithSchemes)
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--every", type=Duration(), default="5s", show_default=True, help="Time from one start to the next.")
@click.option("--timeout", type=Duration(), default="5s", show_default=True, help="How long a whole check may take.")
@click.option("--mode", type=click.Choice(["any", "all"]), default="any", show_default=True, help="Which addresses.")
@_run_options
@click.pass_obj
def watch(verbosity: int, /, urls: tuple[str, ...], every: float, timeout: float, mode: str, **options: Any) -> None:
    """Check URLs (http://, https://, tcp://host:port, ...) until Ctrl-C."""
    from .checks import Mode
    from .config import watch_config

    config = config_or_end(
        lambda: watch_config(urls, every=every, timeout=timeout, mode=Mode(mode), environment=os.environ)
    )
    _run(config, verbosity, **options)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--store", type=HistoryPlace(), metavar="URL", help=f"Where to remember: {STORE}")
def check(file: Path, store: StorePlace | None) -> None:
    """Say what FILE would run and when, and whether the checks fit the limits. Starts and makes nothing.

    Refuses what `run` would refuse, such as a store that this user may not write to.
    """
    from attrs import evolve

    from scheduler import StoreError

    from .config import config_lines, over, read_config

    config, now = config_or_end(lambda: read_config(file, os.environ)), now_here()
    config = _with_rights(config if store is None else evolve(config, store=store))
    print_lines(config_lines(config, now))
    if ended := over(config, now):
        end("\n".join(f"check {each.name!r}: {each.schedule} has no start after now" for each in ended), BAD_USAGE)
    try:
        config.store.check()
    except StoreError as exc:
        refuse(config.store, str(exc))


@cli.command()
@click.argument("target", required=False)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="The agent's configuration.")
@click.option("--store", type=HistoryPlace(), metavar="URL", help=f"Where it remembers: {STORE}")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many to show at most.")
@click.option("--uptime", is_flag=True, help="Show how much of the last hour, day, week and month TARGET was up.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
def history(
    verbosity: int,
    /,
    target: str | None,
    config: Path | None,
    store: StorePlace | None,
    limit: int,
    *,
    uptime: bool,
    as_json: bool,
) -> None:
    """Show past checks, of one TARGET or of all, the latest last. The agent may run meanwhile.

    TARGET may be a group: with --config, the checks of its members are shown.
    """
    from .config import read_config
    from .logs import log_to_stderr
    from .show import (
        begun,
        group_uptime_lines,
        jobs_about,
        json_line,
        json_uptime,
        plain_line,
        plain_uptime,
        uptime_lines as lines_of_uptime,
    )
    from .text import Redactor

    if (config is None) == (store is None):
        raise click.UsageError("give either --config FILE or --store URL")
    if uptime and target is None:
        raise click.UsageError("give the TARGET whose uptime you want")
    group, members = None, None
    names, secrets = None, frozenset[str]()
    if store is None:
        assert config is not None
        found = config_or_end(lambda: read_config(config, os.environ, needs_secrets=False))
        store, names, secrets = found.store, [each.name for each in found.targets], found.secrets
        group = next((each for each in found.groups if each.name == target), None)
        members = (
            None
            if group is None
            else [each.name for each in found.targets if each.is_enabled and each.name in set(group.members)]
        )
    redactor = Redactor(store.secrets | secrets)
    log_to_stderr(verbosity, redactor)
    asked: Sequence[str | None] = jobs_about(target) if members is None else members
    each = records_or_end(store, asked, MOST_OF_UPTIME if uptime else limit)
    records = [record for of_one in each for record in reversed(of_one)]  # they come by when they were due
    if uptime and target is not None and records:
        now, line = now_here().timestamp(), json_uptime if as_json else plain_uptime
        print_lines(
            lines_of_uptime(target, each[0], now, line)
            if group is None or members is None
            else group_uptime_lines(target, dict(zip(members, each, strict=True)), group.at_least, now, line)
        )
        return
    records = sorted(records, key=begun)[-limit:]
    print_lines((json_line if as_json else plain_line)(record, redactor.clean) for record in records)
    if not records:
        about = f" of {target!r}" if target else ""
        end(f"there is no check{about} in {store}{why_none(target, names) if target else ''}", FAILED)


@cli.command("import", cls=WithJobs)
@click.argument("monitor", type=click.Choice(["gatus", "blackbox", "kuma", "heartbeat"]))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target", "targets", multiple=True, metavar="MODULE=URL", help="For blackbox: a target of a module. Repeat it."
)
def import_(monitor: str, file: Path, targets: tuple[str, ...]) -> None:
    """Write a configuration that checks what another MONITOR's FILE does, to standard output.

    What could not be carried over becomes a comment, and is told on standard error, with its line. Targets of a
    blackbox file come from a prometheus.yml next to it, or from --target. For heartbeat FILE may be a folder such as
    monitors.d.
    """
    from .config import without_collections
    from .imports import IMPORTERS, NotImported, imported

    given: dict[str, list[str]] = {}
    for each in targets:
        module, sign, url = each.partition("=")
        if not sign:
            raise click.UsageError(f"--target: expected MODULE=URL, found {each!r}")
        given.setdefault(module, []).append(url)
    with without_collections():
        try:
            drafts, left = IMPORTERS[monitor](file, given)
        except NotImported as exc:
            end(str(exc), BAD_USAGE)
        found = imported(f"{monitor}, {file.name}", drafts, left, problems_of)
    print_lines(found.text.splitlines())
    for line in found.left:
        click.echo(line, err=True)
    if not found.checks:
        end("no check could be carried over", FAILED)


@cli.group("notify")
def notify_() -> None:
    """Try the channels over which people are told."""


@notify_.command("test")
@click.argument("channel")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def notify_test(verbosity: int, /, channel: str, file: Path) -> None:
    """Send a test message over CHANNEL of the configuration FILE. Exit code 1 if it was not taken."""
    from .commands.trial import tried
    from .config import read_config

    text, code = tried(config_or_end(lambda: read_config(file, os.environ)), channel, verbosity)
    end(text, code) if code else print_lines([text])


for _each in (audit, doctor, explain, fleet, incidents, jobs, limits, metrics, tables, token, why, worker, *OF_PEOPLE):
    cli.add_command(_each)


@cli.command("next")
@click.argument("words", nargs=-1, required=True, metavar="EXPRESSION")
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many to show.")
@click.option(
    "--tz", type=Zone(), default="UTC", show_default=True, help="The zone of the expression, such as Europe/Berlin."
)
def next_(words: tuple[str, ...], count: int, tz: str) -> None:
    """Show the next starts of a schedule EXPRESSION.

    Quote the expression: "@every 10s", or "*/5 * * * *".
    """
    from schedule import ScheduleError, parse

    from .text import schedule_lines

    expression, *others = words
    if others:  # and a shell has put names of files in place of each *
        given = " ".join(words)
        with suppress(ScheduleError):
            parse(given, tz=tz)
            raise click.UsageError(f'quote the expression, it is one argument: timerqueue next "{given}"')
        raise click.UsageError('quote the expression, it is one argument, as in timerqueue next "0 9 * * mon"')
    try:
        lines = list(schedule_lines(parse(expression, tz=tz), now_here(), count, tz))
    except ScheduleError as exc:
        raise click.UsageError(str(exc)) from None
    except OverflowError:
        raise click.UsageError(f"a start has no date in {tz}: it lies outside the years 1 to 9999") from None
    print_lines(lines)


def _run(
    config: Config,
    verbosity: int,
    *,
    seconds: float | None,
    once: bool,
    plain: bool,
    as_json: bool,
    store: StorePlace | None,
    source: tuple[Path, Callable[[], Config]] | None = None,
) -> None:
    import anyio
    from attrs import evolve

    from scheduler import InvalidJob, StoreError, StoreTakenOver
    from timerqueue import SystemClock

    from .app import RunPlan, run
    from .config import MetricsPlace, StorePlace
    from .logs import log_to_stderr
    from .notify import PREFIX
    from .reload import Source
    from .show import NotShown, display_on
    from .text import Redactor
    from .web import NotListening

    def with_options(config: Config) -> Config:
        if store is None and once:  # it remembers nothing but metrics that have a place of their own
            metrics = MetricsPlace() if config.metrics.store is None else config.metrics
            config = evolve(config, store=StorePlace(), metrics=metrics)
        if store is not None:  # what ends with its checks is no agent among others
            fleet = config.store.fleet if store.dsn is not None and not once else None
            config = evolve(config, store=evolve(store, fleet=fleet))
        return _with_rights(config)

    config = with_options(config)
    if once and seconds is not None:
        raise click.UsageError("--once ends by itself: leave --for out")
    redactor = Redactor(config.secrets)
    log_to_stderr(verbosity, redactor, told=PREFIX)
    clock = SystemClock()
    follows = None if source is None else Source(source[0], lambda: with_options(source[1]()))
    display = display_on(sys.stdout, clock.wall, plain=plain, as_json=as_json)
    try:
        plan = RunPlan(once=once, seconds=seconds)
        code = anyio.run(partial(run, config, display, plan, clock, source=follows, redactor=redactor))
    except InvalidJob as exc:
        end(str(exc), BAD_USAGE)
    except NotListening as exc:
        end(str(exc), BAD_USAGE)
    except NotShown as exc:
        end(f"cannot write the output: {exc}", FAILED)
    except StoreTakenOver as exc:
        end(f"stopped, because the store is another agent's now: {Redactor(config.secrets).clean(str(exc))}", FAILED)
    except StoreError as exc:
        refuse(config.store, str(exc), " (another one: --store; none: --store memory)")
    sys.exit(code)


def _with_rights(config: Config) -> Config:
    from attrs import evolve

    from .config import warnings_about, warnings_about_owners

    files = [] if config.store.file is None else [config.store.file]
    found = [*warnings_about(files), *warnings_about_owners([*files, *config.metrics.files(config.store)])]
    return evolve(config, warnings=tuple(dict.fromkeys((*config.warnings, *found))))
