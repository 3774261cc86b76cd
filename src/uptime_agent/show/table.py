"""A live table in the terminal."""

from __future__ import annotations

from collections import Counter
from typing import Final, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from scheduler import Job, JobNotFound, RunMissed, WatchdogStatistics

from ..checks import CheckResult, Status
from ..standing import Summary, TargetStatus, Verdict
from ..text import wording
from .display import Screen
from .keys import HINT, Keyboard, ShownPart
from .layout import ShownRow, fitted
from .lines import change_text, result_text, summary_text
from .notices import LeftOutWords

REFRESH: Final = 0.25
STALE: Final = 3
"""Intervals without an audit of jobs that are shown as trouble."""

_FRAME: Final = 6

_STYLES: Final = {Status.UP: "green", Status.DEGRADED: "yellow", Status.DOWN: "bold red", Status.UNKNOWN: "magenta"}
_ORDER: Final = {Status.DOWN: 0, Status.UNKNOWN: 1, Status.DEGRADED: 2, Status.UP: 3, None: 4}


class LiveTable:
    """Redraws itself, troubles first. Notices and changes scroll by above."""

    refresh_every: float | None = REFRESH

    def __init__(self, console: Console, keys: TextIO | None = None) -> None:
        self._console = console
        self._keyboard = Keyboard(keys)
        self._part: ShownPart | None = None
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._view: Screen | None = None
        self._left_out = LeftOutWords()

    def started(self, view: Screen) -> None:
        """See `Display`."""
        self._view = view
        self._part = ShownPart() if self._keyboard.begin() else None
        self._live.start()
        self.refresh()

    def remembered(self, target: TargetStatus) -> None:
        """See `Display`."""

    def checked(self, target: TargetStatus, *, is_change: bool) -> None:
        """See `Display`."""
        if is_change and target.previous is not None:
            self.notice(change_text(target))

    def missed(self, target: TargetStatus, event: RunMissed) -> None:
        """See `Display`."""
        if (words := self._left_out.of(target.name, event)) is not None:
            self.notice(": ".join(words))

    def notice(self, text: str) -> None:
        """See `Display`."""
        at = f"{wording.stamp(self._view.now())}  " if self._view else ""
        self._console.print(Text(at + wording.printable(text), style="dim"))

    def refresh(self) -> None:
        """See `Display`."""
        if self._view is None:
            return
        width, height, part = self._console.width, self._console.height, self._part
        if part is not None:
            for key in self._keyboard.pressed():
                part.press(key, _room(height))
        self._live.update(draw(self._view, width, height, part), refresh=True)

    def stopped(self, summary: Summary) -> None:
        """Leave the last table."""
        self.refresh()
        self._keyboard.end()
        self._live.stop()
        self._console.print(Text(summary_text(summary)))


def draw(view: Screen, width: int, height: int, part: ShownPart | None = None) -> Group:
    """Draw table and footer. `part`: None: everything."""
    now, room = view.now(), _room(height)
    # A stable sort keeps the file's order among equals, so rows do not jump.
    targets = sorted(view.targets, key=lambda target: _ORDER[target.status])
    if part is not None and part.words:
        targets = [each for each in targets if part.has(each.name, _word(each))]
    first = 0 if part is None else part.start(len(targets), room)
    lines, shown = fitted([_row(target, view, now) for target in targets[first : first + room]], width, room)
    return Group(*lines, *_footer(view, _beyond(part, first, shown, len(targets), len(view.targets))))


def _room(height: int) -> int:
    return max(height - _FRAME, 1)


def _beyond(part: ShownPart | None, first: int, shown: int, found: int, targets: int) -> str:
    if part is None or not (first or part.is_typing or part.words):
        hint = "" if part is None else f" ({HINT})"
        return f"and {targets - shown:,} more{hint}; " if shown < targets else ""
    rows = f"{first + 1:,} to {first + shown:,} of {found:,}" if found else "none"
    words = f" with {wording.printable(part.words)!r}" if part.words or part.is_typing else ""
    return f"{rows}{words}{' (Enter, Escape)' if part.is_typing else ''}; "


def _row(target: TargetStatus, view: Screen, now: float) -> ShownRow:
    verdict, run = target.last, target.last_run
    results = verdict.results if verdict else ()
    job = _job_of(target, view)
    state = _state(target, job)
    late = "" if run is None or not target.checks_now else wording.latency(run.lateness)
    result = Text(_result(target, job, now), "" if target.status is Status.UP else state.style)
    cells = {
        "name": Text(wording.printable(target.name)),
        "state": state,
        "since": Text("" if target.since is None else wording.span(now - target.since)),
        "latency": Text("" if not verdict or verdict.latency is None else wording.latency(verdict.latency)),
        "result": result,
        "phases, ms": Text(_longest_phases(results[0]) if len(results) == 1 else "", "dim"),
        "next": Text("ended" if job is None else _next(job, now)),
        "late": Text(late, "dim"),
        "checks": Text(f"{target.checks:,}", "dim"),
        "down": Text(f"{target.counts[Status.DOWN]:,}", "dim"),
    }
    return ShownRow(cells, None if target.status in (Status.UP, None) else result)


def _job_of(target: TargetStatus, view: Screen) -> Job | None:
    try:
        return view.scheduler.get(target.name)
    except JobNotFound:
        return None


def _state(target: TargetStatus, job: Job | None) -> Text:
    if job is not None and job.error is not None:
        return Text("PAUSED", "dim")
    if target.acts(target.name).in_maintenance is not None:
        return Text("MAINTENANCE", "dim")
    style = _STYLES[Status.DOWN] if target.is_flapping else _STYLES[target.status] if target.status else "dim"
    return Text(_word(target), style)


def _word(target: TargetStatus) -> str:
    if target.is_flapping:
        return "FLAPPING"
    return target.status.name if target.status else "waiting"


def _result(target: TargetStatus, job: Job | None, now: float) -> str:
    verdict, run = target.last, target.last_run
    acts = target.acts(target.name)
    if job is not None and job.error is not None:
        was = "" if target.status is None else f"; was {target.status.value}"
        return f"{wording.printable(job.error) if acts.paused is None else acts.text}{was}"
    if verdict is None or run is None:
        return acts.text
    found = _verdict(verdict) if target.is_verified else f"{_verdict(verdict)}, certificate not verified"
    found = found if target.checks_now else f"{wording.span(now - run.ended.timestamp())} ago: {found}"
    return f"{acts.text}; {found}" if acts.text else found


def _verdict(verdict: Verdict) -> str:
    if verdict.error is not None:
        return verdict.error
    if len(verdict.results) == 1:
        return result_text(verdict.results[0])
    return f"{len(verdict.results)} addresses" if verdict.results else verdict.status.value


def _longest_phases(result: CheckResult) -> str:
    longest = sorted(result.phases, key=lambda name: result.phases[name], reverse=True)[:2]
    return wording.phases({name: seconds for name, seconds in result.phases.items() if name in longest})


def _next(job: Job, now: float) -> str:
    start = job.next_start
    return "" if start is None else wording.span(start.timestamp() - now + 0.999)


def _footer(view: Screen, beyond: str) -> list[Text]:
    counts = Counter(target.status for target in view.targets)
    states = Text()
    if beyond:
        states.append(beyond, "dim")
    for status in Status:
        if counts[status]:
            states.append(f"{counts[status]:,} {status.value}  ", _STYLES[status])
    if counts[None]:
        states.append(f"{counts[None]:,} waiting for the first check", "dim")
    statistics = view.scheduler.statistics()
    if (trouble := _trouble_of(statistics.watchdog, view.now())) is not None:
        states.append(trouble, "bold red")
    used = [
        f"{name} {each.used}/{each.size:g}" for name, each in statistics.limits.items() if not name.startswith("host:")
    ]
    limits = f" ({', '.join(used)})" if used else ""
    least = wording.least(statistics.missed, is_exact=statistics.missed_is_exact)
    load = (
        f"{wording.count(statistics.active_tasks, 'check')} running, {statistics.waiting_tasks:,} waiting for room,"
        f" {statistics.runs:,} done, {least} missed; Ctrl-C stops{limits}"
    )
    return [states, Text(load, "dim", no_wrap=True, overflow="ellipsis")]


def _trouble_of(watchdog: WatchdogStatistics | None, now: float) -> str | None:
    if watchdog is None or watchdog.last is None or watchdog.interval is None:
        return None
    since = now - watchdog.last.at
    if since > STALE * watchdog.interval:
        return f"no audit for {wording.span(since)}"
    if not watchdog.failing or watchdog.oldest is None:
        return None
    found = watchdog.oldest[1]
    when = "never" if found is None else f"{wording.span(now - found)} ago"
    job = wording.printable(watchdog.oldest[0])
    return f"{wording.count(len(watchdog.failing), 'job')} cannot be started; {job} was last well {when}"
