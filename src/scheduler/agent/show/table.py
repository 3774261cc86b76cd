"""A live table in the terminal: what is not well first, and as much of it as there is room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from scheduler import JobNotFound, RunMissed

from ..checks import CheckResult, Status
from ..targets import Summary, TargetStatus, Verdict
from ..text import wording
from .display import View
from .lines import change_text, missed_text, result_text, summary_text

REFRESH: Final = 0.25
WIDE: Final = 140
MEDIUM: Final = 80
_SHORTEST_NAME: Final = 8
_SHORTEST_RESULT: Final = 12
"""Cells, as far as the terminal is not too narrow even for that."""
_FRAME: Final = 6
"""Lines of the terminal that are not rows: head, rules, footer and the cursor's line."""

_STYLES: Final = {Status.UP: "green", Status.DEGRADED: "yellow", Status.DOWN: "bold red", Status.UNKNOWN: "magenta"}
_ORDER: Final = {Status.DOWN: 0, Status.UNKNOWN: 1, Status.DEGRADED: 2, Status.UP: 3, None: 4}


class LiveTable:
    """Redraws itself where it stands. Notices and changes scroll by above it."""

    refresh_every: float | None = REFRESH

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._view: View | None = None

    def started(self, view: View) -> None:
        """Draw it for the first time."""
        self._view = view
        self._live.start()
        self.refresh()

    def remembered(self, target: TargetStatus) -> None:
        """Nothing: the next refresh shows it, in its row."""

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
        """Draw it anew."""
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
    names = [wording.printable(target.name) for target in targets]
    columns = _columns(width, max(map(cell_len, names), default=0))
    table = Table(expand=True, box=None, pad_edge=False, header_style="bold dim")
    for name, options in columns.items():
        table.add_column(name, no_wrap=True, overflow="ellipsis", **options)
    for target, name in zip(targets, _told_apart(names, columns["name"]["width"]), strict=True):
        cells = _cells(target, name, view, now)
        table.add_row(*(cells[name] for name in columns))
    return Group(table, *_footer(view, len(view.targets) - len(targets)))


def _columns(width: int, longest: int) -> dict[str, dict[str, Any]]:
    """The columns for which there is room, from left to right. `longest`: of the names, which come before phases."""
    columns: dict[str, dict[str, Any]] = {"state": {"min_width": 8}}
    if width >= MEDIUM:
        columns["since"] = {"justify": "right", "min_width": 6}
    columns["latency"] = {"justify": "right", "min_width": 8}
    columns["result"] = {"ratio": 1, "min_width": 8}
    if width >= WIDE:
        columns["phases, ms"] = {"min_width": 30}
    if width >= MEDIUM:
        columns["next"] = {"justify": "right", "min_width": 4}
        columns["late"] = {"justify": "right", "min_width": 7}
        columns["checks"] = {"justify": "right", "min_width": 6}
    if width >= WIDE:
        columns["down"] = {"justify": "right", "min_width": 4}
    if "phases, ms" in columns and _room(width, columns) < longest:
        del columns["phases, ms"]
    return {"name": {"width": max(min(longest, _room(width, columns)), _SHORTEST_NAME)}, **columns}


def _room(width: int, others: Mapping[str, Mapping[str, Any]]) -> int:
    """What is left for names. The blanks between columns are one wide."""
    taken = sum(int(options["min_width"]) + 1 for options in others.values())
    return width - taken - (_SHORTEST_RESULT - int(others["result"]["min_width"]))


def _told_apart(names: Sequence[str], width: int) -> list[str]:
    """The names, cut to that width where most of them look different: near a third of it, or else elsewhere."""
    best: list[str] = []
    for head in sorted(range(0, width - 1, max(width // 10, 1)), key=lambda head: abs(head - width // 3)):
        cut = [_cut(name, width, head) for name in names]
        best = max(best, cut, key=lambda each: len(set(each)))
        if len(set(best)) == len(names):
            break
    return best


def _cut(name: str, width: int, head: int) -> str:
    if cell_len(name) <= width:
        return name
    return f"{set_cell_size(name, head)}\u2026{set_cell_size(name[::-1], width - head - 1)[::-1]}"


def _cells(target: TargetStatus, name: str, view: View, now: float) -> dict[str, Text]:
    verdict, run = target.last, target.last_run
    results = verdict.results if verdict else ()
    style = _STYLES[target.status] if target.status else "dim"
    late = "" if run is None or not target.checks_now else wording.latency(run.lateness)
    return {
        "name": Text(name),
        "state": Text(target.status.name if target.status else "waiting", style),
        "since": Text("" if target.since is None else wording.span(now - target.since)),
        "latency": Text("" if not verdict or verdict.latency is None else wording.latency(verdict.latency)),
        "result": Text(_result(target, now), "" if target.status is Status.UP else style),
        "phases, ms": Text(_longest_phases(results[0]) if len(results) == 1 else "", "dim"),
        "next": Text(_next(target, view, now)),
        "late": Text(late, "dim"),
        "checks": Text(f"{target.checks:,}", "dim"),
        "down": Text(f"{target.counts[Status.DOWN]:,}", "dim"),
    }


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
    """The two that took longest, in the order in which they came."""
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
    used = [
        f"{name} {each.used}/{each.size:g}" for name, each in statistics.limits.items() if not name.startswith("host:")
    ]
    least = wording.least(statistics.missed, is_exact=statistics.missed_is_exact)
    load = (
        f"{wording.count(statistics.active_tasks, 'check')} running, {statistics.waiting_tasks:,} waiting for room"
        f" ({', '.join(used)}); {statistics.runs:,} done, {least} missed; Ctrl-C stops"
    )
    return [states, Text(load, "dim", no_wrap=True, overflow="ellipsis")]
