"""How commands ask a running agent, and commands that only ask: why, incidents, limits."""

# ruff: noqa: PLC0415 - as in cli.py

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from ..options import Instant
from ..output import FAILED, end, print_lines

Command = TypeVar("Command", bound=Callable[..., Any])


def of_agent(command: Command) -> Command:
    """Say which agent is asked, and how the answer is written."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line."),
        click.option(
            "--at",
            metavar="URL",
            help="Ask the agent at http://HOST:PORT, https://HOST or unix:PATH. TIMERQUEUE_TOKEN holds the token.",
        ),
        click.argument("file", type=click.Path(path_type=Path), required=False, envvar="TIMERQUEUE_FILE"),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("id")
@click.argument("file", type=click.Path(path_type=Path), required=False, envvar="TIMERQUEUE_FILE")
@click.option("--at", type=Instant(), metavar="INSTANT", help="The instant, such as 2026-01-31T09:00:00Z.")
@click.option("--agent", metavar="URL", help="Ask the agent at URL, in place of that of FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(id: str, file: Path | None, at: str | None, agent: str | None, *, as_json: bool) -> None:
    """Say why the job ID ran late, or not at all. A check is the job of its name.

    Without --at: at its last due instant, or why it does not start now. Without an agent the store of FILE answers.
    Exit code 1 if there is no such job.
    """
    query = {} if at is None else {"at": at}

    def ask(agent: Any) -> list[Any]:
        return [good(agent.ask("GET", remote().path_of(id, "why"), query=query))]

    (found,) = read(file, agent, ask, lambda place: stored().stored_why(place, id, at), option="--agent")
    if found["verdict"] == "gone":
        end(found["text"], FAILED)
    print_lines([json.dumps(found) if as_json else found["text"]])


@click.command()
@of_agent
def incidents(file: Path | None, at: str | None, *, as_json: bool) -> None:
    """List the open incidents of a running agent: what is down, since when, why, and who knows."""
    found = remote().asked_or_end(remote().agent_or_end(file, at), "GET", "/v1/incidents").body["incidents"]
    print_lines(json.dumps(each) if as_json else incident_line(each) for each in found)
    if not found and not as_json:
        print_lines(["no incident is open"])


@click.command()
@of_agent
def limits(file: Path | None, at: str | None, *, as_json: bool) -> None:
    """Show the limits of a running agent: sizes, units in use, and what waits."""
    answer = remote().asked_or_end(remote().agent_or_end(file, at), "GET", "/v1/limits")
    print_lines([json.dumps(answer.body)] if as_json else flat(answer.body))


def remote() -> Any:
    """Import what asks an agent: TLS and HTTP take long, and help needs neither."""
    from . import remote

    return remote


def stored() -> Any:
    """Import what reads a store."""
    from . import stored

    return stored


def read(
    file: Path | None,
    at: str | None,
    ask: Callable[[Any], list[Any]],
    from_store: Callable[[Any], list[Any]],
    *,
    option: str = "--at",
) -> list[Any]:
    """Ask the agent. If none answers, read the store of its file, and say so."""
    agent = remote().agent_or_end(file, at, option)
    try:
        return ask(agent)
    except remote().NotAnswering as exc:
        if file is None:
            end(str(exc), FAILED)
        place = stored().store_of(file)
        if place is None:
            end(f"{exc}; and its store ends with it", FAILED)
        click.echo(f"{exc}: this comes from the store, {place}", err=True)
        return from_store(place)


def good(answer: Any) -> Any:
    """Return what a good answer says, or end with why the agent refuses."""
    if not answer.is_good:
        remote().refused(answer)
    return answer.body


def incident_line(incident: dict[str, Any]) -> str:
    """Write one line of a list."""
    name = incident.get("target") or f"the group {incident['group']}"
    known = incident["acknowledged"]
    parts = [name, f"{incident['status']} since {incident['began']}", incident.get("error")]
    parts.append(None if known is None else f"(acknowledged by {known['actor']}: {known['reason']})")
    return "  ".join(part for part in parts if part)


def flat(value: Any, before: str = "") -> Iterator[str]:
    """Write nested JSON as lines of paths and values. What is empty is left out."""
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        path = f"{before}.{name}" if before else str(name)
        if isinstance(each, (dict, list)):
            yield from flat(each, path)
        elif each is not None:
            yield f"{path}: {each}"
