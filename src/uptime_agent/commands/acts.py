"""Commands of operators. A running agent with [api] acts at once. Others follow rows that are written here."""

# ruff: noqa: PLC0415

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ..options import Duration, now_here
from ..output import BAD_USAGE, FAILED, config_or_end, end, print_lines, refuse

if TYPE_CHECKING:
    from ..acts import Act, ActKind, Change, Known, Scope
    from ..config import Config, StorePlace

Command = TypeVar("Command", bound=Callable[..., Any])

FOLLOWED: Final = "a running agent follows within a second"


def _file(command: Command) -> Command:
    return click.argument("file", type=click.Path(path_type=Path))(command)


def _actor(command: Command) -> Command:
    return click.option("--actor", help="Who acts. By default the user of this process.")(command)


def _reason(command: Command) -> Command:
    return click.option("--reason", help="Why: others read it.")(command)


def _scope(command: Command) -> Command:
    for option in (
        click.option("--tag", metavar="TAG", help="All targets with this tag, instead of TARGET."),
        click.option("--group", metavar="GROUP", help="A group and its members, instead of TARGET."),
        click.argument("target", required=False),
    ):
        command = option(command)
    return command


def _length(command: Command) -> Command:
    return click.option("--for", "seconds", type=Duration(), help="For how long, such as 2h.")(command)


def _is_end(command: Command) -> Command:
    return click.option("--end", "is_end", is_flag=True, help="End it.")(command)


@click.command("ack")
@_file
@click.argument("target")
@_reason
@_actor
@_is_end
def ack(file: Path, target: str, **said: Any) -> None:
    """Acknowledge the open incident of TARGET, a check or group of FILE. Its reminders rest until it recovers."""
    from ..acts import ActKind, target_or_group

    config, known = _read(file)
    _act(config, ActKind.ACKNOWLEDGE, lambda: target_or_group(known, target), **said)


@click.command("silence")
@_file
@_scope
@_length
@_reason
@_actor
@_is_end
def silence(file: Path, seconds: float | None, *, is_end: bool, **said: Any) -> None:
    """Send no message about TARGET for a while. What is still down then is told once."""
    from ..acts import ActKind

    if seconds is None and not is_end:
        raise click.UsageError("a silence needs an end: give --for, such as --for 2h")
    _act_in_scope(file, ActKind.SILENCE, seconds=seconds, is_end=is_end, **said)


@click.command("maintain")
@_file
@_scope
@_length
@_reason
@_actor
@_is_end
def maintain(file: Path, **said: Any) -> None:
    """Leave out the checks of TARGET, for a while or until --end. Windows of FILE stay."""
    from ..acts import ActKind

    _act_in_scope(file, ActKind.MAINTENANCE, **said)


@click.command("pause")
@_file
@click.argument("target")
@_length
@_reason
@_actor
def pause(file: Path, target: str, **said: Any) -> None:
    """Check TARGET no more, for a while or until `resume`."""
    from ..acts import ActKind

    _act_in_scope(file, ActKind.PAUSE, target, **said)


@click.command("resume")
@_file
@click.argument("target")
@_actor
def resume(file: Path, target: str, actor: str | None) -> None:
    """Check TARGET again, also after a pause by SQL."""
    from ..acts import ActKind

    _act_in_scope(file, ActKind.PAUSE, target, actor=actor, is_end=True)


@click.command("check-now")
@_file
@click.argument("target")
@_actor
def check_now(file: Path, target: str, actor: str | None) -> None:
    """Have a running agent check TARGET at once. The result counts like any other."""
    from ..acts import ActKind

    _act_in_scope(file, ActKind.CHECK, target, actor=actor, reason="asked by hand")


@click.command("acts")
@_file
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per act.")
def acts(file: Path, *, as_json: bool) -> None:
    """Show what people did that still holds: acknowledged, silenced, paused, in maintenance."""
    import json

    config, _ = _read(file)
    now = now_here().timestamp()
    held = sorted((act for act in _stored(config.store) if act.holds(now)), key=lambda act: (act.since, act.id))
    print_lines(json.dumps(act.shown()) if as_json else act.sentence for act in held)


def _read(file: Path) -> tuple[Config, Known]:
    from ..config import read_config
    from ..targets import known_of

    config = config_or_end(lambda: read_config(file, os.environ, needs_secrets=False))
    return config, known_of(config.targets, config.groups)


def _act_in_scope(
    file: Path,
    kind: ActKind,
    target: str | None = None,
    group: str | None = None,
    tag: str | None = None,
    **said: Any,
) -> None:
    from ..acts import NoSuchName, named, scope_of

    config, known = _read(file)

    def find() -> Scope:
        try:
            return scope_of(known, target, group, tag)
        except NoSuchName:
            scope = named(target, group, tag)
            if said.get("is_end") and any((act.kind, act.scope) == (kind, scope) for act in _stored(config.store)):
                return scope  # its act can be ended still
            raise

    _act(config, kind, find, **said)


def _act(
    config: Config,
    kind: ActKind,
    scope_of: Callable[[], Scope],
    *,
    actor: str | None,
    reason: str | None = None,
    seconds: float | None = None,
    is_end: bool = False,
) -> None:
    from ..acts import Act, ActRefused, actor_of, begun, ended, reason_of

    now, until = now_here(), None
    try:
        scope, by = scope_of(), actor_of(_user() if actor is None else actor)
        if is_end:
            change, said = ended(kind, scope), f"{by} ends the {kind.value} of {scope}"
        else:
            if reason is None:
                raise click.UsageError("say why with --reason: others will ask")
            until = None if seconds is None else now + timedelta(seconds=seconds)
            ends = None if until is None else _instant(until)
            act = Act(kind=kind, scope=scope, actor=by, reason=reason_of(reason), since=_instant(now), until=ends)
            change, said = begun(act), act.sentence
    except ActRefused as exc:
        end(str(exc), BAD_USAGE)
    done = _by_agent(config, kind, scope, is_end=is_end, actor=actor, reason=reason, until=until)
    if done is None:
        _write(config.store, change)
        said = f"{said}; {FOLLOWED}"
    print_lines([said if not done or is_end else done])


_WORDS: Final = {
    "acknowledge": "ack",
    "silence": "silence",
    "pause": "pause",
    "maintenance": "maintain",
    "check": "check-now",
}


def _by_agent(
    config: Config,
    kind: ActKind,
    scope: Scope,
    *,
    is_end: bool,
    actor: str | None,
    reason: str | None,
    until: datetime | None,
) -> str | None:
    """Have a running agent act. Returns what it says; None: none answers. Ends with why it refuses."""
    if config.api is None:
        return None
    from urllib.parse import quote

    from .remote import NotAnswering, refused, remote_with

    remote = remote_with(config.api)
    assert remote is not None
    by = _user() if actor is None and remote.token is None else actor
    is_resumed = is_end and kind.value == "pause"
    given = {"actor": by} | ({} if is_end or kind.value == "check" else {"reason": reason})
    given |= {} if until is None else {"until": until.isoformat()}
    given = {name: value for name, value in given.items() if value is not None}
    path = f"/v1/{scope.kind.value}s/{quote(scope.name, safe='')}/{'resume' if is_resumed else _WORDS[kind.value]}"
    try:
        answer = (
            remote.ask("DELETE", path, query=given) if is_end and not is_resumed else remote.ask("POST", path, given)
        )
    except NotAnswering:
        return None
    if not answer.is_good:
        refused(answer)
    return str((answer.body or {}).get("text", ""))


def _instant(at: datetime) -> float:
    return at.timestamp()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"


def _write(place: StorePlace, change: Change) -> None:
    from scheduler import StoreError

    from .rows import NoSuchJob, by_hand, carry_out

    try:
        with by_hand(place) as rows:
            carry_out(rows, change)
    except NoSuchJob as exc:
        end(f"{exc} in {place}: run the agent once with this file", FAILED)
    except StoreError as exc:
        refuse(place, str(exc))


def _stored(place: StorePlace) -> list[Act]:
    from scheduler import StoreError

    from .rows import acts_of, by_hand

    try:
        with by_hand(place) as rows:
            return acts_of(rows)
    except StoreError as exc:
        refuse(place, str(exc))


OF_PEOPLE: Final = (ack, acts, check_now, maintain, pause, resume, silence)
