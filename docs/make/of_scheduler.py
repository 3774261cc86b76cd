"""Pages about the scheduler: its options, its verbs, jobs, events, outcomes and errors."""

from __future__ import annotations

import enum
import inspect
from typing import get_args

from prose import fields_of, is_option, member_texts, options, paragraphs, public, sentence, value, verb

import scheduler
from scheduler import Delivery, Event, Job, JobStatistics, Missed, MissedReason, Outcome, Overlap, Scheduler, Verdict


def scheduler_page() -> str:
    """Return the page of the options and verbs of `Scheduler`."""
    verbs = [verb(name, member) for name, member in public(Scheduler) if name not in {"add", "add_many"}]
    return "\n\n".join(
        [
            "# Reference: Scheduler",
            "[The scheduler](../scheduler.md) explains these options and verbs with examples.",
            "## Options of `Scheduler`",
            option_list(Scheduler.__init__, Scheduler.__doc__ or ""),
            "## Options of `add`",
            "`s.add(func, schedule, ...)` returns a [Job](job.md). `s.add_many(...)` takes the same options.",
            option_list(Scheduler.add, Scheduler.add.__doc__ or ""),
            "## `add_many`",
            paragraphs(Scheduler.add_many.__doc__ or ""),
            "## Verbs of `Scheduler`",
            *verbs,
        ]
    )


def option_list(function: object, text: str) -> str:
    """Return one item for each option: its name, its default and its meaning."""
    assert inspect.isfunction(function)
    parameters = inspect.signature(function).parameters
    said = options(function, text)
    return "\n".join(
        f"- `{name}`{default_of(parameters[name])}: {said[name]}" for name in said if is_option(name, parameters[name])
    )


def default_of(parameter: inspect.Parameter) -> str:
    """Return the default of a parameter in brackets; nothing if it has to be given."""
    return "" if parameter.default is inspect.Parameter.empty else f" (`{value(parameter.default)}`)"


def job_page() -> str:
    """Return the page of the verbs of `Job`."""
    return "\n\n".join(
        [
            "# Reference: Job",
            "`s.add(...)` and `s.get(id)` return a job. You may use it from any thread.",
            "## What a job has",
            *(verb(name, member) for name, member in public(Job)),
            "## Statistics of a job",
            f"`job.statistics()` returns these counts: {fields_of(JobStatistics)}.",
            paragraphs(JobStatistics.__doc__ or ""),
        ]
    )


def events_page() -> str:
    """Return the page of events, outcomes, reasons and rules."""
    kinds = get_args(Event)
    return "\n\n".join(
        [
            "# Reference: events, outcomes, rules",
            "`s.listen(callback, RunEnded)` calls you with each event of that kind.",
            "Instants are aware datetimes in UTC, and lengths are seconds.",
            "## Events",
            *(
                f"### {each.__name__}\n\n{paragraphs(each.__doc__ or '')}\n\nFields: {fields_of(each)}."
                for each in kinds
            ),
            "## Outcomes",
            "`RunEnded.outcome` and `Record.outcome` are one of these. In JSON each is its name in small letters.",
            members(Outcome),
            "## Missed reasons",
            "`RunMissed.reason` and `Record.reason` are one of these.",
            members(MissedReason),
            "## Verdicts",
            "`Why.verdict` is one of these: [why did it not run?](../why.md)",
            members(Verdict),
            "## Rules",
            *(f"### {each.__name__}\n\n{paragraphs(each.__doc__ or '')}\n\n{members(each)}" for each in RULES),
        ]
    )


RULES: tuple[type[enum.Enum], ...] = (Overlap, Missed, Delivery)


def members(kind: type[enum.Enum]) -> str:
    """Return one item for each member of an enum."""
    return "\n".join(
        f"- **{member.name}**: {sentence(text)}" if text else f"- **{member.name}**"
        for member, text in member_texts(kind)
    )


def errors_page() -> str:
    """Return the page of all errors that users catch."""
    kinds = [getattr(scheduler, name) for name in scheduler.__all__]
    errors = sorted(
        (each for each in kinds if inspect.isclass(each) and issubclass(each, Exception)),
        key=lambda each: each.__name__,
    )
    return "\n\n".join(
        [
            "# Reference: errors",
            "You can import each of these from `scheduler`. Its message says what was wrong and what to do.",
            *(f"## {each.__name__}\n\n{paragraphs(each.__doc__ or '')}\n\nAlso: {bases(each)}." for each in errors),
        ]
    )


def bases(kind: type) -> str:
    """Return the names of the bases of an error."""
    return ", ".join(f"`{each.__name__}`" for each in kind.__bases__)
