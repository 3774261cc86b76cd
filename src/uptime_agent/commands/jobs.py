"""Commands that read and change the jobs of a running agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ..options import Duration, Instant, now_here
from ..output import FAILED, end, print_lines
from . import asking

PAGE: Final = 500
"""Jobs of one request."""

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("jobs")
def jobs() -> None:
    """Read and change the jobs of a running agent, over its control API.

    FILE is the configuration of the agent, with [api]. In place of it, name the agent by --at URL. Without an agent the
    commands that only read use the store of FILE, and say so.
    """


def _of_job(command: Command) -> Command:
    return click.argument("id")(asking.of_agent(command))


@jobs.command("list")
@asking.of_agent
@click.option("--state", "state", multiple=True, metavar="STATE", help="Only jobs in this state. Repeat it.")
@click.option("--tag", "tag", multiple=True, help="Only jobs with this tag. Repeat it: with all of them.")
@click.option("--owner", help='Only jobs of this owner, such as "api" or "code".')
@click.option("-q", "q", metavar="TEXT", help="Only jobs with this text in their id, name or tags.")
@click.option("--limit", type=click.IntRange(1), default=1_000, show_default=True, help="How many to show at most.")
def list_(file: Path | None, at: str | None, *, as_json: bool, limit: int, **asked: Any) -> None:
    """List jobs: id, state, next start, owner."""
    query = {name: value for name, value in asked.items() if value}
    found = asking.read(
        file,
        at,
        lambda remote: _pages(remote, query, limit),
        lambda store: asking.stored().stored_jobs(store, query, limit),
    )
    print_lines(json.dumps(each) if as_json else job_line(each) for each in found)


@jobs.command()
@_of_job
def show(id: str, file: Path | None, at: str | None, *, as_json: bool) -> None:
    """Show one job: its definition, its state, its pauses and its counts."""

    def ask(remote: Any) -> list[Any]:
        return [asking.good(remote.ask("GET", asking.remote().path_of(id)))]

    (found,) = asking.read(file, at, ask, lambda store: asking.stored().stored_job(store, id))
    print_lines([json.dumps(found)] if as_json else job_lines(found))


@jobs.command()
@_of_job
@click.option("--limit", type=click.IntRange(1, PAGE), default=20, show_default=True, help="How many to show at most.")
def history(id: str, file: Path | None, at: str | None, limit: int, *, as_json: bool) -> None:
    """Show how the starts of a job ended, the latest last. The job may be gone."""

    def ask(remote: Any) -> list[Any]:
        return list(asking.good(remote.ask("GET", asking.remote().path_of(id, "runs"), query={"limit": limit}))["runs"])

    found = asking.read(file, at, ask, lambda store: asking.stored().stored_history(store, id, limit))
    print_lines(json.dumps(each) if as_json else record_line(each) for each in reversed(found))
    if not found:
        end(f"there is no record of {id!r}", FAILED)


@jobs.command()
@_of_job
@click.option("--until", type=Instant(), help="When the pause ends, such as 2026-01-31T09:00:00Z.")
@click.option("--for", "seconds", type=Duration(), help="How long the pause lasts, such as 2h.")
@click.option("--reason", help="Why, for people.")
def pause(id: str, file: Path | None, at: str | None, *, as_json: bool, **lasts: Any) -> None:
    """Pause a job, until it is resumed or until a time. A restart of the agent does not end the pause."""
    until, seconds = lasts["until"], lasts["seconds"]
    if until is not None and seconds is not None:
        raise click.UsageError("give --until or --for, not both")
    if seconds is not None:
        until = (now_here() + timedelta(seconds=seconds)).isoformat()
    _act(id, "pause", file, at, {"until": until, "reason": lasts["reason"]}, as_json=as_json)


@jobs.command()
@_of_job
def resume(id: str, file: Path | None, at: str | None, *, as_json: bool) -> None:
    """Let a paused job start again. Starts missed meanwhile stay missed."""
    _act(id, "resume", file, at, as_json=as_json)


@jobs.command()
@_of_job
def run(id: str, file: Path | None, at: str | None, *, as_json: bool) -> None:
    """Run a job once, now, under its limits. Does not wait for the end of the run."""
    _act(id, "run", file, at, as_json=as_json)


@jobs.command()
@_of_job
def skip(id: str, file: Path | None, at: str | None, *, as_json: bool) -> None:
    """Leave out the next start of a job."""
    _act(id, "skip", file, at, as_json=as_json)


def _definition(command: Command) -> Command:
    for option in (
        click.option("--owner", default="api", show_default=True, help="Whose the job is."),
        click.option(
            "--set", "options", multiple=True, metavar="KEY=JSON", help="Another option, as in --set timeout='\"30s\"'."
        ),
        click.option("--tag", "tags", multiple=True, help="A tag. Repeat it."),
        click.option("--arg", "args", multiple=True, metavar="JSON", help="An argument of the task. Repeat it."),
        click.option("--schedule", help='When it starts, such as "@every 10s" or "0 9 * * mon".'),
    ):
        command = option(command)
    return command


@jobs.command()
@_of_job
@_definition
@click.option("--task", required=True, help="The name of a task that the agent has registered.")
def add(id: str, file: Path | None, at: str | None, task: str, owner: str, *, as_json: bool, **definition: Any) -> None:
    """Add a job. Exit code 1 if there is one of this ID."""
    body = {"task": task, **_body_of(**definition)}
    if "schedule" not in body:
        raise click.UsageError("say when it starts: --schedule")
    remote = asking.remote().agent_or_end(file, at)
    answer = asking.remote().asked_or_end(
        remote, "PUT", asking.remote().path_of(id), body, query={"owner": owner}, If_None_Match="*"
    )
    print_lines([json.dumps(answer.body) if as_json else f"added: {id}"])


@jobs.command()
@_of_job
@_definition
@click.option("--unset", "unset", multiple=True, metavar="KEY", help="Take this option back to its default.")
def alter(
    id: str, file: Path | None, at: str | None, owner: str, unset: tuple[str, ...], *, as_json: bool, **definition: Any
) -> None:
    """Change some options of a job. The others stay."""
    body = {**_body_of(**definition), **dict.fromkeys(unset)}
    if not body:
        raise click.UsageError("say what changes: --schedule, --arg, --tag, --set or --unset")
    answer = asking.remote().asked_or_end(
        asking.remote().agent_or_end(file, at), "PATCH", asking.remote().path_of(id), body, query={"owner": owner}
    )
    print_lines([json.dumps(answer.body) if as_json else f"{'it was so' if answer.body is None else 'changed'}: {id}"])


@jobs.command()
@_of_job
@click.option("--owner", default="api", show_default=True, help="Whose the job is.")
def remove(id: str, file: Path | None, at: str | None, owner: str, *, as_json: bool) -> None:
    """Remove a job, and cancel its run. Its records stay."""
    asking.remote().asked_or_end(
        asking.remote().agent_or_end(file, at), "DELETE", asking.remote().path_of(id), query={"owner": owner}
    )
    print_lines([json.dumps({"removed": id}) if as_json else f"removed: {id}"])


# -- asking ------------------------------------------------------------------------------------------------------------


def _act(id: str, act: str, file: Path | None, at: str | None, body: Any = None, *, as_json: bool) -> None:
    given = {name: value for name, value in (body or {}).items() if value is not None}
    asking.remote().asked_or_end(
        asking.remote().agent_or_end(file, at), "POST", asking.remote().path_of(id, act), given
    )
    print_lines([json.dumps({"id": id, "act": act}) if as_json else f"{_DONE[act]}: {id}"])


_DONE: Final = {"pause": "paused", "resume": "resumed", "run": "runs once, now", "skip": "its next start is left out"}


def _pages(remote: Any, query: dict[str, Any], limit: int) -> list[Any]:
    page = asking.good(remote.ask("GET", "/v1/jobs", query={**query, "limit": min(limit, PAGE)}))
    found = list(page["jobs"])
    while page.get("next") and len(found) < limit:
        page = asking.good(remote.ask("GET", f"/v1/jobs{page['next']}"))
        found += page["jobs"]
    return found[:limit]


def _body_of(
    schedule: str | None, args: tuple[str, ...], tags: tuple[str, ...], options: tuple[str, ...]
) -> dict[str, Any]:
    body: dict[str, Any] = {} if schedule is None else {"schedule": schedule}
    body |= {"args": [_json(each, "--arg") for each in args]} if args else {}
    body |= {"tags": list(tags)} if tags else {}
    for each in options:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise click.UsageError(f"--set: expected KEY=JSON, found {each!r}")
        body[name] = _json(value, f"--set {name}")
    return body


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise click.UsageError(f"{what}: expected JSON, such as 30 or '\"text\"', found {text[:100]!r}") from None


# -- lines -------------------------------------------------------------------------------------------------------------


def job_line(job: dict[str, Any]) -> str:
    """Write one line of a list."""
    owner = (job.get("spec") or {}).get("owner") or "code"
    return f"{job['id']}  {state_of(job)}  {job.get('next_start') or '-'}  {owner}"


def job_lines(job: dict[str, Any]) -> Iterator[str]:
    """Write everything that is known of a job."""
    yield from asking.flat({**job, "state": state_of(job)})


def state_of(job: dict[str, Any]) -> str:
    """The state in a word. The API says "disabled" of a paused job, and who paused it."""
    return "paused" if job.get("pauses") else str(job["state"])


def record_line(record: dict[str, Any]) -> str:
    """Write one line of a history."""
    why = record.get("error") or record.get("reason")
    return f"{record['due']}  {record['outcome']}{f'  {why}' if why else ''}"
