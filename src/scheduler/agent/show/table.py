"""A live table in the terminal: what is not well first, and as much of it as there is room for."""

from __future__ import annotations

from collections import Counter
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from scheduler import JobNotFound, RunMissed, WatchdogStatistics

from ..checks import CheckResult, Status
from ..targets import Summary, TargetStatus, Verdict
from ..text import wording
from .display import View
from .layout import Row, fitted
from .lines import change_text, missed_text, result_text, summary_text

REFRESH: Final = 0.25
STALE: Final = 3
"""Intervals after which it is told that nobody has audited the jobs."""

_FRAME: Final = 6
"""Lines of the terminal that are not rows: head, rules, footer and the cursor's line."""

_STYLES: Final = {Status.UP: "green", Status.DEGRADED: "yellow", Status.DOWN: "bold red", Status.UNKNOWN: "magenta"}
_ORDER: Final = {Status.DOWN: 0, Status.UNKNOWN: 1, Status.DEGRADED: 2, Status.UP: 3, None: 4}


class LiveTable:
    """A table that redraws itself where it stands. Notices and changes scroll by above it."""

    refresh_every: float | None = REFRESH

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._view: View | None = None

    def started(self, view: View) -> None:
        """Draw the table for the first time."""
        self._view = view
        self._live.start()
        self.refresh()

    def remembered(self, target: TargetStatus) -> None:
        """Do nothing: the next refresh shows the target, in its row."""

    def checked(self, target: TargetStatus, *, is_change: bool) -> None:
        """Let changes scroll by; the next refresh shows the rest."""
        if is_change and target.previous is not None:
            self.notice(change_text(target))

    def missed(self, target: TargetStatus, event: RunMissed) -> None:
        """Tell which checks did not take place."""
        self.notice(f"{target.name}: {missed_text(event)}")

    def notice(self, text: str) -> None:
        """Tell a sentence."""
        at = f"{wording.stamp(self._view.now())}  " if self._view else ""
        self._console.print(Text(at + wording.printable(text), style="dim"))

    def refresh(self) -> None:
        """Draw the table again."""
        if self._view is not None:
            self._live.update(draw(self._view, self._console.width, self._console.height), refresh=True)

    def stopped(self, summary: Summary) -> None:
        """Leave the last table on the screen."""
        self.refresh()
        self._live.stop()
        self._console.print(Text(summary_text(summary)))


def draw(view: View, width: int, height: int) -> Group:
    """The table and its footer, fitted into a terminal of that size."""
    now = view.now()
    room = max(height - _FRAME, 1)
    # Python's sort keeps the order of the file among equals, so rows do not jump about.
    targets = sorted(view.targets, key=lambda target: _ORDER[target.status])[:room]
    lines, shown = fitted([_row(target, view, now) for target in targets], width, room)
    return Group(*lines, *_footer(view, len(view.targets) - shown))


def _row(target: TargetStatus, view: View, now: float) -> Row:
    verdict, run = target.last, target.last_run
    results = verdict.results if verdict else ()
    style = _STYLES[target.status] if target.status else "dim"
    late = "" if run is None or not target.checks_now else wording.latency(run.lateness)
    result = Text(_result(target, now), "" if target.status is Status.UP else style)
    cells = {
        "name": Text(wording.printable(target.name)),
        "state": Text(target.status.name if target.status else "waiting", style),
        "since": Text("" if target.since is None else wording.span(now - target.since)),
        "latency": Text("" if not verdict or verdict.latency is None else wording.latency(verdict.latency)),
        "result": result,
        "phases, ms": Text(_longest_phases(results[0]) if len(results) == 1 else "", "dim"),
        "next": Text(_next(target, view, now)),
        "late": Text(late, "dim"),
        "checks": Text(f"{target.checks:,}", "dim"),
        "down": Text(f"{target.counts[Status.DOWN]:,}", "dim"),
    }
    return Row(cells, None if target.status in (Status.UP, None) else result)


def _result(target: TargetStatus, now: float) -> str:
    verdict, run = target.last, target.last_run
    if verdict is None or run is None:
        return ""
    found = _verdict(verdict) if target.is_verified else f"{_verdict(verdict)}, certificate not verified"
    return found if target.checks_now else f"{wording.span(now - run.ended)} ago: {found}"


def _verdict(verdict: Verdict) -> str:
    if verdict.error is not None:
        return verdict.error
    if len(verdict.results) == 1:
        return result_text(verdict.results[0])
    return f"{len(verdict.results)} addresses" if verdict.results else verdict.status.value


def _longest_phases(result: CheckResult) -> str:
    """The two phases that took longest, in the order in which they came."""
    longest = sorted(result.phases, key=lambda name: result.phases[name], reverse=True)[:2]
    return wording.phases({name: seconds for name, seconds in result.phases.items() if name in longest})


def _next(target: TargetStatus, view: View, now: float) -> str:
    try:
        start = view.scheduler.get(target.name).next_start
    except JobNotFound:
        return "ended"
    return "" if start is None else wording.span(start.timestamp() - now + 0.999)


def _footer(view: View, left_out: int) -> list[Text]:
    counts = Counter(target.status for target in view.targets)
    states = Text()
    if left_out:
        states.append(f"and {left_out:,} more; ", "dim")
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
    """Say what is wrong with the audits of jobs; None: nothing."""
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
