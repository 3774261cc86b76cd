"""Runs turned into tables: medians, ratios against the baseline, targets and whether they are reached."""

import math
import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from attrs import frozen

from .catalogue import CONTENDERS, SCENARIOS, Measure, Scenario
from .runner import Run, Status

BEGIN, END = "<!-- table:begin -->", "<!-- table:end -->"
ABSENT = "-"
WHOLE_FROM = 10
COMPARED = {"us", "bytes", "1/s"}
"""The units whose figures are shown with their ratio to the baseline's."""


def machine() -> str:
    """One line: on what all this was measured."""
    system = f"{platform.system()} {platform.release()}"
    return f"{os.cpu_count()} cores ({_processor()}), Python {platform.python_version()}, {system}"


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.machine()


@frozen
class Results:
    """All runs of one scenario."""

    scenario: Scenario
    runs: tuple[Run, ...]

    def of(self, contender: str) -> tuple[Run, ...]:
        """The contender's runs, in the order in which they were made."""
        return tuple(run for run in self.runs if run.contender == contender)

    def median(self, contender: str, key: str) -> float | None:
        """The contender's median; None if it has no figure."""
        values = [run.values[key] for run in self.of(contender) if run.status is Status.OK and key in run.values]
        return None if not values or any(map(math.isnan, values)) else median(values)

    def ratio(self, contender: str, key: str) -> float | None:
        """The contender's median divided by the baseline's."""
        ours, baseline = self.median(contender, key), self.median(self.scenario.baseline, key)
        return None if ours is None or not baseline else ours / baseline

    def is_reached(self, measure: Measure) -> bool | None:
        """Whether our median reaches the target; None where there is no target or no figure."""
        if measure.target is None:
            return None
        figure = (self.ratio if measure.target.of_baseline else self.median)(self.scenario.ours, measure.key)
        return None if figure is None else measure.target.is_reached(figure)

    def trouble(self) -> Iterator[str]:
        """A sentence for each contender that has no figures."""
        for run in self.runs:
            if run.status is not Status.OK:
                yield f"{CONTENDERS[run.contender].title}: {run.status}, {run.reason}"


def by_scenario(runs: Iterable[Run]) -> list[Results]:
    """The runs put together, in the order of the catalogue; scenarios without a run left out."""
    every = tuple(runs)
    grouped = (Results(each, tuple(run for run in every if run.scenario == each.name)) for each in SCENARIOS.values())
    return [results for results in grouped if results.runs]


def markdown(runs: Sequence[Run], where: str) -> str:
    """A section per scenario: a line that says where and how often it was measured, and the table."""
    return "\n\n".join(_section(results, where) for results in by_scenario(runs))


def _section(results: Results, where: str) -> str:
    scenario = results.scenario
    rounds = max(run.round for run in results.runs)
    sizes = "quick sizes, not comparable with the targets" if any(run.quick for run in results.runs) else "full sizes"
    names = [name for name in scenario.contenders if results.of(name)]
    header = ["", "target", "reached", *(CONTENDERS[name].title for name in names)]
    rows = [header, ["---"] * 3 + ["---:"] * len(names)]
    rows += [_row(results, measure, names) for measure in scenario.measures]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    head = f"{where}. Medians of {rounds}; {sizes}."
    return "\n\n".join([f"### {scenario.name}: {scenario.what}", head, table, *results.trouble()])


def _row(results: Results, measure: Measure, names: Sequence[str]) -> list[str]:
    return [
        measure.label + (f", {measure.unit}" if measure.unit else ""),
        _target(results, measure),
        {None: "", True: "yes", False: "**no**"}[results.is_reached(measure)],
        *(_figure(results, name, measure) for name in names),
    ]


def _target(results: Results, measure: Measure) -> str:
    target = measure.target
    if target is None:
        return ""
    bound = f"{'≥' if target.at_least else '≤'} {target.limit:,g}"
    return bound + (f" x {CONTENDERS[results.scenario.baseline].title}" if target.of_baseline else "")


def _figure(results: Results, contender: str, measure: Measure) -> str:
    figure = results.median(contender, measure.key)
    if figure is None:
        broken = [run.status for run in results.of(contender) if run.status is not Status.OK]
        return broken[-1] if broken else ABSENT
    shown = f"{figure:,.{measure.digits}f}"
    ratio = results.ratio(contender, measure.key) if measure.unit in COMPARED else None
    if ratio is None or contender == results.scenario.baseline:
        return shown
    return f"{shown} ({ratio:,.{0 if ratio >= WHOLE_FROM else 2}f} x)"


def targets(runs: Sequence[Run], where: str) -> str:
    """One table: each measure that has a target, ours beside the peers. A missed target is bold."""
    head = ["| scenario | measured | target | ours | others |", "|---|---|---|---:|---|"]
    rows = [_target_row(results, measure) for results in by_scenario(runs) for measure in results.scenario.measures]
    return "\n".join([f"{where}. Medians.", "", *head, *filter(None, rows)])


def _target_row(results: Results, measure: Measure) -> str:
    """The row of a measure; empty if it has no target, or was not measured on ours."""
    reached = results.is_reached(measure)
    if reached is None:
        return ""
    ours, *others = [name for name in results.scenario.contenders if results.of(name)]
    label = measure.label + (f", {measure.unit}" if measure.unit else "")
    figure = _figure(results, ours, measure)
    beside = ((CONTENDERS[name].title, _figure(results, name, measure).partition(" (")[0]) for name in others)
    cells = [
        f"`{results.scenario.name}`",
        label,
        _target(results, measure),
        figure if reached else f"**{figure}**",
        "; ".join(f"{title} {shown}" for title, shown in beside if shown != ABSENT),
    ]
    return f"| {' | '.join(cells)} |"


def write_between_markers(file: Path, text: str) -> None:
    """The text stands between the two marker lines of the file. ValueError: it lacks the lines."""
    before, begin, rest = file.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{file} has no lines {BEGIN} and {END}: put them where the table shall stand")
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}", "utf-8")
