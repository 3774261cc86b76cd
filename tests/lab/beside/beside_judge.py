"""Judge an agent by its fifty healthy targets: only the agent's own fault can fail it.

Lateness is the hard part. A check starts late for one of three reasons. The agent worked. The agent waited: for a lock,
a lookup, or a thread that kept the interpreter. Or the agent was ready to run and had no core. The first two are the
agent's fault, the third is the machine's. Three ways to tell them apart were weighed:

- The CPU time of the loop's thread between two turns. It misses a loop that waits. A blocking call, a sleep and a
  thread that keeps the interpreter cost the loop's thread nothing.
- The agent's lateness minus that of a second process. A busy machine holds the two up at different instants, so the
  difference is noise.
- What Linux counts for each thread: how long it was ready and had no core (the second number of its `schedstat`).
  This is the way taken. The agent answers for all its work and all its waits.

A witness reads the counters of all threads every 20 ms. A check is excused for their growth between the last reading
before it was due and the first reading after it started. That is never too little. No counter shows that the whole
machine stood still. The witness then slept too long, though it had a core. That time is excused too, and so is the time
that the host of a virtual machine reports as taken.

A busy machine makes the verdict mild. A thread that waits for the interpreter wakes every 5 ms, and each time it may
wait for a core. That waiting is excused though a core would not have helped.

Some delays stand in no counter: a page that comes from the disk, or a host that takes a core without a word. They come
at random, and the inputs are the same in each play. So a timed verdict fails only if it fails in each of three plays of
the same inputs (`beside_healthy.py`). For the other verdicts one failure is enough.
"""

import re
from bisect import bisect_left, bisect_right
from operator import itemgetter
from statistics import median

from attrs import field, frozen

MOST_LATE = 0.1
"""Seconds by which a check of a healthy target may start late by the agent's own fault."""
MOST_MEMORY = 400 * 1024
"""KiB."""
MOST_GROWTH = 64 * 1024
"""KiB between the second quarter of a play and the last. The store and the allocator take up to a third of it."""
HELD_UP = re.compile(r"this machine was itself held up|began .* late; found: up")
"""The error of a check that was held up: its status says nothing of the target."""


@frozen
class Sample:
    """A reading of the counters. `at`: UTC seconds. The others are seconds that add up.

    `waited`: the time in which threads of the agent were ready and had no core, all threads together. `stood_still`:
    the time in which the machine stood still, or its host took a core.
    """

    at: float
    waited: float
    stood_still: float


@frozen
class Check:
    """A check of a healthy target. `due`: UTC seconds. `lateness`: seconds."""

    name: str
    status: str
    error: str | None
    due: float
    lateness: float


@frozen(kw_only=True)
class Seen:
    """The evidence of one play. `stuck`: why the play came to a halt, or None.

    `wanted`, `given`: numbers of inputs. `peak`, `memory`: KiB, `memory` every 0.2 s. `defects`: lines of the log that
    tell of a defect. `others`: statuses of hostile targets, counted. `signals`: answers to a known peer's signals.
    `reached`: texts that show how deep inputs came, and whether the agent said them.
    """

    wanted: int
    given: int
    exit: int | None
    stuck: str | None
    checks: tuple[Check, ...]
    samples: tuple[Sample, ...]
    peak: int
    memory: tuple[int, ...]
    defects: tuple[str, ...]
    others: dict[str, int] = field(factory=dict)
    reached: dict[str, bool] = field(factory=dict)
    signals: dict[str, int] = field(factory=dict)


@frozen
class Verdict:
    """One demand, the evidence, and whether the demand is met. `is_timed`: a busy machine could look like a failure."""

    what: str
    seen: str
    holds: bool
    is_timed: bool = False


def own_lateness(check, samples):
    """Return the seconds by which a check started late by the agent's own fault: possibly less, never more."""
    before = samples[max(bisect_right(samples, check.due, key=_at) - 1, 0)]
    after = samples[min(bisect_left(samples, check.due + check.lateness, key=_at), len(samples) - 1)]
    return check.lateness - (after.waited - before.waited) - (after.stood_still - before.stood_still)


def _at(sample):
    return sample.at


def verdicts(seen):
    """Yield the verdicts on an agent."""
    yield Verdict("inputs", f"{seen.given:,} of {seen.wanted:,}", seen.given >= seen.wanted)
    missing = [what for what, is_seen in seen.reached.items() if not is_seen]
    yield Verdict("inputs got in", f"not seen: {missing}" if missing else "yes", not missing)
    yield Verdict("alive at the end", seen.stuck or f"status {seen.exit}", seen.stuck is None and seen.exit == 0)
    yield _no_defect(seen)
    yield _healthy(seen)
    yield _in_time(seen)
    yield Verdict("memory at most", f"{seen.peak // 1024} MiB", 0 < seen.peak < MOST_MEMORY)
    yield _flat(seen)
    if seen.signals:
        wrong = {said: number for said, number in seen.signals.items() if said != "200"}
        yield Verdict("signals of a known peer", f"{seen.signals}", not wrong and seen.signals.get("200", 0) > 0)


def _no_defect(seen):
    return Verdict("defects", "; ".join((*seen.defects[:5], *seen.defects[5:][-8:])) or "none", not seen.defects)


def _healthy(seen):
    """Judge the statuses. Checks that were held up do not count: `_in_time` judges whose fault that was."""
    counted = [each for each in seen.checks if not HELD_UP.search(each.error or "")]
    wrong = [f"{each.name}: {each.status}: {each.error}" for each in counted if each.status != "up"]
    told = f"{len(wrong):,} of {len(counted):,} checks not up"
    return Verdict("healthy targets", "; ".join([told, *wrong[:3]]), bool(counted) and not wrong, is_timed=True)


def _in_time(seen):
    late = [(own_lateness(each, seen.samples), each) for each in seen.checks if each.lateness > MOST_LATE / 2]
    worst, check = max(late, key=itemgetter(0), default=(0.0, None))
    most = max((each.lateness for each in seen.checks), default=0.0)
    number = sum(own > MOST_LATE for own, _ in late)
    told = (
        f"{number:,} late by its own fault, by {max(worst, 0) * 1000:.0f} ms at most ({most * 1000:.0f} with others')"
    )
    return Verdict("in time", told if check is None else f"{told}: {check.name}", number == 0, is_timed=True)


def _flat(seen):
    quarter = len(seen.memory) // 4
    before, after = (median(part or [0]) for part in (seen.memory[quarter : 2 * quarter], seen.memory[-quarter:]))
    return Verdict("memory grows", f"{before / 1024:.0f} -> {after / 1024:.0f} MiB", after <= before + MOST_GROWTH)
