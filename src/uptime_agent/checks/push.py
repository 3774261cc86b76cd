"""PUSH: a dead man's switch. A target is down if it reports so, or is silent until its deadline.

Signals come by HTTP into an `Inbox`, which each run empties. The deadline is the job's next start, so it survives a
restart.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any, Final, assert_never

from attrs import Factory, field, frozen

from scheduler import current_run

from ..text import Url, printable, wording
from ..toml import Option, Unfit, Unset, seconds, text_of_file
from .contract import NO_PORT, Attempt, Clash, Detail, Finding, Kind, Status
from .inbox import Inbox, Said, Signal

SHORTEST_TOKEN: Final = 16
GRACE: Final = 60.0
"""Seconds that a signal may be late."""

LONGEST_LOG: Final = 300
"""Characters of a signal's text."""

_STANDS: Final = "stands"
"""Key of a detail: the status that START and LOG signals keep."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+")


@frozen(kw_only=True)
class PushCheck:
    """A target's reports. `grace`: seconds. `is_heard`: a port listens; if not, the status is unknown."""

    url: Url
    token: str = field(repr=False)
    grace: float = GRACE
    inbox: Inbox = field(default=Factory(Inbox), eq=False, repr=False)
    is_heard: bool = field(default=True, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.url.target not in {"", "/"} or self.url.user is not None:
            raise Clash("url", "expected push://NAME and nothing else")

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        return frozenset({self.token})

    async def attempt(self, at: Attempt) -> Finding:
        """Judge the signals since the last run."""
        if not self.is_heard:
            return Finding(status=Status.UNKNOWN, error="it reports by itself, and nobody listens with --once")
        signals = self.inbox.take()
        if not signals:
            return self._nothing(at.before)
        deciding = [each for each in signals if each.said in {Said.SUCCESS, Said.FAIL}]
        found = deciding[-1] if deciding else signals[-1]
        status = _status(found, at.before.get(_STANDS))
        stands = {} if status is Status.UNKNOWN else {_STANDS: status.value}
        return Finding(status=status, error=_words(found, status), detail={**_detail(found), **stands})

    def _nothing(self, before: Detail) -> Finding:
        last, stands = before.get("signal_at"), before.get(_STANDS)
        as_before = {**_kept(last), **({} if stands is None else {_STANDS: stands})}
        if self.inbox.is_early(_due()):
            status = _standing(stands)
            error = None if status is Status.UP else "nothing new has come"
            return Finding(status=status, error=error, detail=as_before)
        if self.inbox.found_silent():
            return Finding(status=Status.DOWN, error=_silence(last), detail={**_kept(last), _STANDS: Status.DOWN.value})
        error = f"{_silence(last)}, but connections were turned away, and one may have brought it"
        return Finding(status=Status.UNKNOWN, error=error, detail=as_before)


def _due() -> float:
    """UTC seconds. A check outside a run is never early."""
    try:
        return current_run().due.timestamp()
    except LookupError:
        return math.inf


def _silence(last: object) -> str:
    if isinstance(last, (int, float)) and not isinstance(last, bool):
        return f"no signal since {wording.stamp(float(last))}"
    return "no signal has come"


def _kept(last: object) -> Detail:
    return {"signal_at": last} if isinstance(last, (int, float)) and not isinstance(last, bool) else {}


def _status(signal: Signal, before: object) -> Status:
    match signal.said:
        case Said.SUCCESS:
            return Status.UP
        case Said.FAIL:
            return Status.DOWN
        case Said.START | Said.LOG:
            return _standing(before)
        case _:
            assert_never(signal.said)


def _standing(before: object) -> Status:
    return {each.value: each for each in (Status.UP, Status.DOWN)}.get(str(before), Status.UNKNOWN)


def _words(signal: Signal, status: Status) -> str | None:
    if status is Status.UP:
        return None
    about = f": {signal.log}" if signal.log else ""
    match signal.said:
        case Said.SUCCESS:
            return None
        case Said.FAIL:
            return (f"it exited with {signal.code}" if signal.code else "it reports a failure") + about
        case Said.START:
            return "it has started, and its end is waited for"
        case Said.LOG:
            return f"it says{about or ' nothing'}"
        case _:
            assert_never(signal.said)


def _detail(signal: Signal) -> Detail:
    lasted = None if signal.lasted is None else round(signal.lasted, 3)
    more = {"run": signal.run, "exit_code": signal.code, "log": signal.log, "lasted": lasted}
    found: dict[str, str | int | float] = {"signal": signal.said.value, "signal_at": round(signal.at, 3)}
    return found | {name: value for name, value in more.items() if value is not None}


def log_of(body: bytes) -> str | None:
    """The beginning of a text, on one line."""
    found = printable(" ".join(body[: 4 * LONGEST_LOG].decode("utf-8", "replace").split()))
    return found[:LONGEST_LOG] or None


def _token(value: Any) -> str:
    match value:
        case {"env": str(variable), **others} if not others:
            found = os.environ.get(variable)
            if found is None:
                raise Unset(variable, os.environ, " for the token")
        case {"file": str(path), **others} if not others:
            found = text_of_file(Path(path))
        case _:
            found = value if isinstance(value, str) else ""
    if len(found) < SHORTEST_TOKEN or not _TOKEN.fullmatch(found):
        given = '{ env = "NAME" }, { file = "PATH" }'
        expected = f"{given}, or at least {SHORTEST_TOKEN} letters, digits, - and _"
        raise Unfit(expected, value, is_secret=True)
    return found


def _make(*, url: Url, token: str | None = None, grace: float = GRACE) -> PushCheck:
    if token is None:
        raise Clash("url", 'a token is missing: add token = { env = "NAME" }, by which its signals are known')
    return PushCheck(url=url, token=token, grace=grace)


PUSH: Final = Kind(
    "push",
    {"push": NO_PORT},
    _make,
    {
        "token": Option(
            _token, "by which the agent knows whose signal it is. Each check has its own", is_required=True
        ),
        "grace": Option(
            seconds,
            "how much later than expected a signal may still come. A run that has told its start has to end within "
            "this time",
            GRACE,
        ),
    },
    is_resolved=False,
    meaning="up as long as the target reports to us that it is, in time; `interval` or `schedule` says when",
)
