"""An answer in plain English. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, assert_never

from .._shape import LATE, Holder, Waited
from .._values import MissedReason, Outcome, Pause
from .facts import Facts
from .verdict import Verdict, Why

_REASONS: Final[Mapping[MissedReason, str]] = {
    MissedReason.LATE: "it was found too late: no process ran, the event loop was busy, or the clock was set",
    MissedReason.OVERLAP: "an earlier run of the job had not ended",
    MissedReason.NO_ROOM: "it found no room in time",
    MissedReason.STORE: "it had room, but the store had not recorded its start",
    MissedReason.PAUSED: "the job was paused",
    MissedReason.REMOVED: "the job was removed while it waited",
    MissedReason.STOPPED: "the scheduler stopped while it waited",
    MissedReason.REPEATED: "it has another record: the clock was set back, or the process restarted",
    MissedReason.SKIPPED: "somebody skipped it",
    MissedReason.AFTER_CRASH: "the job rested, because its process had died during a run",
}


def text_of(why: Why, facts: Facts) -> str:
    """Say the answer in sentences."""
    sentences = [f"Job {why.job_id!r} {_what(why, facts)}", *_more(why, facts), *_others(why)]
    return " ".join(f"{each}." for each in sentences if each)


def _what(why: Why, facts: Facts) -> str:  # noqa: C901, PLR0911, PLR0912 - one sentence for each verdict
    at = _time(why.at if why.due is None else why.due)
    match why.verdict:
        case Verdict.RAN:
            return f"ran its start of {at} in time{_ended(why)}"
        case Verdict.RAN_LATE:
            return f"ran its start of {at} late, by {_span(why.lateness)}{_ended(why)}"
        case Verdict.RUNS:
            return f"runs its start of {at} now, since {_time(why.started)}{_late(why)}"
        case Verdict.WAITS:
            return f"waits to run its start of {at}"
        case Verdict.CUT_OFF:
            return f"was cut off in its start of {at}: {_cut_off(why)}"
        case Verdict.OVERLAPPED:
            return f"did not run at {at}: its run of {_time(why.run)} had not ended" if why.run else _missed(why, at)
        case Verdict.LEFT_OUT:
            return f"did not run at {at}: {_pause(why)}"
        case Verdict.MISSED:
            return _missed(why, at)
        case Verdict.NOT_DUE if why.due is not None:
            return f"does not start at {at}: its next start is {_time(why.next)}"
        case Verdict.NOT_DUE:
            return f"was not due at {at} by its schedule"
        case Verdict.TO_COME:
            return f"will start at {at}"
        case Verdict.PAUSED:
            return f"does not start at {at}: {_pause(why)}"
        case Verdict.RESTS:
            return f"does not start at {at}: it rests until {_time(why.until)}, because its process died during a run"
        case Verdict.PARKED:
            return f"cannot start: {why.error or 'its row cannot be read'}"
        case Verdict.GONE:
            return f"is not there at {at}: it was never added, was removed, or its schedule has ended"
        case Verdict.PRUNED:
            return f"has no record of {at}: that is before the first record that is kept"
        case Verdict.NOT_KNOWN:
            return f"has no record of {at}: {_unknown(why, facts)}"
        case _ as never:
            assert_never(never)


def _more(why: Why, facts: Facts) -> list[str]:
    """Return what held the tick up, and who had it."""
    found: list[str] = []
    if why.verdict in _WAITING:
        found.append(_held_up(why))
    if why.verdict in {Verdict.MISSED, Verdict.OVERLAPPED} and why.decided is not None:
        found.append(f"That was decided at {_time(why.decided)}")
    if facts.standing is None and why.verdict not in {Verdict.GONE, Verdict.PRUNED}:
        found.append("The job is gone")
    if why.attempt is not None and why.attempt > 1:
        found.append(f"This is attempt {why.attempt}")
    if why.node_before is not None:
        found.append(f"Scheduler {why.node} of this store ran it, and scheduler {why.node_before} the run before")
    return found


_WAITING: Final = {Verdict.RAN_LATE, Verdict.WAITS, Verdict.RUNS, Verdict.CUT_OFF, Verdict.MISSED}


def _held_up(why: Why) -> str:
    if why.run is not None and why.verdict is Verdict.WAITS:
        return f"It waits for the job's run of {_time(why.run)}, which has not ended"
    earlier = f"It waited for the job's run of {_time(why.run)}, which had not ended" if why.run is not None else ""
    if why.waited is not None:
        began = (why.waited.at - why.due).total_seconds() if why.due is not None else 0.0
        late = f"It began to wait for room {_span(began)} after it was due" if began > LATE else ""
        return ". ".join(each for each in (earlier, late, _waited(why.waited)) if each)
    if earlier:
        return earlier
    if why.verdict is Verdict.WAITS:
        return f"It waits because {why.because}" if why.because else ""
    if why.verdict is not Verdict.RAN_LATE:
        return ""
    if why.node_before is not None:
        return "No limit held it up: it waited until a scheduler had the job again, or the event loop was busy"
    return "No limit held it up: the event loop or the store was busy, no process ran, or the clock was set"


def _waited(waited: Waited) -> str:
    if waited.limit is None:
        return f"It found all {_units(waited.size)} places of the scheduler taken{_holders(waited)}"
    units = "the 1 unit" if waited.size == 1 else f"the {_units(waited.size)} units"
    return f"It waited for {units} of limit {waited.limit!r}{_holders(waited)}"


def _holders(waited: Waited) -> str:
    held = [_holder(each, is_one=waited.size == 1) for each in waited.holders]
    if waited.others:
        held.append(f"{waited.others} other{'s' * (waited.others > 1)}")
    said = f", held by {_listed(held)}" if held else ""
    if waited.resting:
        said += f"; {waited.resting} rested after earlier runs"
    if waited.elsewhere:
        said += f"; {waited.elsewhere} were not lent to this node"
    if waited.ahead:
        said += f"; {waited.ahead} waited before it"
    last = waited.after
    if last is not None and all((last.job_id, last.due) != (each.job_id, each.due) for each in waited.holders):
        said += f". It began as the run of {_holder(last, is_one=True)} had ended"
    return said


def _holder(holder: Holder, *, is_one: bool) -> str:
    units = "" if is_one or holder.units == 1 else f" ({holder.units} units)"
    return f"job {holder.job_id!r}{units} since {_time(holder.since)}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _others(why: Why) -> list[str]:
    """Return the starts around an instant that has no run, or none yet."""
    if why.verdict is Verdict.NOT_DUE and why.due is None:
        before = f"the start before is {_time(why.previous)}" if why.previous else "no start comes before"
        after = f"the start after is {_time(why.next)}" if why.next else "no start comes after"
        return [f"By that, {before}, and {after}"]
    if why.verdict in {Verdict.MISSED, Verdict.OVERLAPPED, Verdict.LEFT_OUT, Verdict.CUT_OFF} and why.next is not None:
        return [f"The start after is {_time(why.next)}"]
    return []


def _ended(why: Why) -> str:
    if why.outcome is None:
        return ""
    took = ""
    if why.started is not None and why.ended is not None:
        took = f" after {_span((why.ended - why.started).total_seconds())}"
    return f", and {_OUTCOMES[why.outcome]}{took}"


_OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.SUCCEEDED: "succeeded",
    Outcome.FAILED: "failed",
    Outcome.TIMED_OUT: "was ended by its timeout",
    Outcome.CANCELLED: "was cancelled",
    Outcome.CRASHED: "was cut off",
    Outcome.MISSED: "was missed",
}


def _late(why: Why) -> str:
    return f", and began {_span(why.lateness)} late" if (why.lateness or 0.0) > LATE else ""


def _cut_off(why: Why) -> str:
    again = "It will be tried again" if why.owed else "It will not be tried again"
    if why.outcome is not Outcome.CRASHED and why.started is None and why.error:
        return f"{why.error}. {again}"
    began = "it had not begun" if why.started is None else f"it had begun at {_time(why.started)}"
    how = "the process died under it" if why.outcome is Outcome.CRASHED else "its scheduler stopped"
    after = f", which the next one found at {_time(why.ended)}" if why.outcome is Outcome.CRASHED else ""
    return f"{how}{after}, and {began}. {again}"


def _missed(why: Why, at: str) -> str:
    return f"did not run at {at}: {_REASONS[why.reason] if why.reason is not None else 'no reason is recorded'}"


def _pause(why: Why) -> str:
    pause = why.pause
    if pause is None:
        return f"it was paused: {why.error}" if why.error else "it was paused"
    return _paused(pause)


def _paused(pause: Pause) -> str:
    until = "until somebody resumes it" if pause.until is None else f"until {_time(pause.until)}"
    since = "" if pause.since.year < 1971 else f", since {_time(pause.since)}"  # noqa: PLR2004 - not known
    what = "the job is paused: " if pause.scope.startswith("job:") else ""
    return f"{what}{pause.text}{since}, {until}"


def _unknown(why: Why, facts: Facts) -> str:
    if not facts.is_kept:
        return "this scheduler has no store, and keeps no records"
    standing = facts.standing
    if standing is not None and standing.elsewhere is not None:
        return f"node {standing.elsewhere!r} has the job, and knows what waits there"
    start = None if standing is None else standing.next_start
    if start is not None and why.due is not None and why.due >= start:
        return "it is due, and has not begun"
    return "the job may have been added later, or had another schedule"


def _time(at: datetime | None) -> str:
    if at is None:
        return "an unknown time"
    at = at.astimezone(UTC)
    fraction = f".{at.microsecond // 1000:03}" if at.microsecond else ""
    return f"{at:%Y-%m-%d %H:%M:%S}{fraction} UTC"


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _units(size: float | None) -> str:
    return "" if size is None else f"{size:g}"
