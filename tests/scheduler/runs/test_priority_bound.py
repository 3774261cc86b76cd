"""How long a due job may have to wait for room, proved and then tested.

The pool starts what waits by *rank*: due - 10 p, the smallest first, where p is the priority and 10 s are AGEING. It is
work-conserving (as long as something waits that needs nothing but capacity, all c units are busy) and takes back
nothing that it has given. Let L be the longest run. For a tick w, due at d and started at s, let t be the last instant
up to d at which a unit was free, so that nothing waited then.

**Under capacity.** In [t, s) all c units are busy, which is c (s - t) of work. All of it was due in [t, s), but for
what was running at t: at most c - 1 runs, each with at most L to go. If any stretch of x seconds makes at most B + r x
of work due, with r < c, then c (s - t) <= (c - 1) L + B + r (s - t), so that for every tick, whatever its priority and
those of the others,

    s - d  <=  s - t  <=  ((c - 1) L + B) / (c - r).

n periodic jobs with runs of l seconds each T seconds make r = the sum of l / T, and B = the sum of l, due.

**Over capacity** there is no bound for all, but ageing still bounds who may overtake. In [d, s) all units are busy with
what was due up to d and not finished then, R, or with what came later and ranks higher: its due instant e has
e - 10 q < d - 10 p for its priority q, so e < d + 10 (q - p). With P the highest priority that there is,

    c (s - d)  <=  R + the work that becomes due in (d, d + 10 (P - p)),

and this is finite: nobody starves, however long the overload lasts. With equal priorities the last part is empty, and
the order is that of the due instants.
"""

from datetime import timedelta

from hypothesis import assume, given, settings, strategies as st

from kit import examples, since_start
from schedule import At
from scheduler.testing import simulate
from timerqueue._pool import AGEING
from timerqueue.testing import START

ROUNDING = 1e-3


class Tick:
    """One run that is due once: when, how long it takes, and how important it is."""

    def __init__(self, due, length, priority):
        self.due = due
        self.length = length
        self.priority = priority
        self.started = self.ended = None

    @property
    def rank(self):
        """Smaller goes first."""
        return self.due - AGEING * self.priority

    def left(self, instant):
        """How much of its work is left then."""
        return self.length - min(max(instant - self.started, 0), self.length)


def run(ticks, capacity):
    """Run them all under the simulated clock, each as a job of its own, and note when each started."""

    def build(s, clock):
        for number, tick in enumerate(ticks):
            when = At(START + timedelta(seconds=tick.due))
            s.add(clock.sleep, when, id=f"{number}", args=(tick.length,), priority=tick.priority)

    length = max(tick.due for tick in ticks) + sum(tick.length for tick in ticks) + 1
    done = simulate(build, length, limit=capacity)
    for number, tick in enumerate(ticks):
        (ended,) = done.runs(f"{number}")
        tick.started, tick.ended = since_start(ended.started), since_start(ended.ended)


priorities = st.integers(-4, 4)
capacities = st.integers(1, 4)
streams = st.lists(
    st.tuples(st.integers(1, 12), st.integers(5, 60), st.integers(0, 59), priorities), min_size=1, max_size=6
)
loads = st.lists(st.builds(Tick, st.integers(1, 60), st.integers(1, 15), priorities), min_size=1, max_size=40)


@settings(max_examples=examples(60))
@given(streams, capacities)
def test_under_capacity_every_tick_starts_within_the_bound(streams, capacity):
    """For any mixture of periodic work of all priorities."""
    rate = sum(length / period for length, period, _, _ in streams)
    assume(rate < capacity)
    bound = ((capacity - 1) * max(length for length, *_ in streams) + sum(length for length, *_ in streams)) / (
        capacity - rate
    )
    ticks = [
        Tick(due, length, priority)
        for length, period, phase, priority in streams
        for due in range(1 + phase % period, 240, period)
    ]
    run(ticks, capacity)
    assert max(tick.started - tick.due for tick in ticks) <= bound + ROUNDING


@settings(max_examples=examples(60))
@given(loads, capacities)
def test_over_capacity_nobody_is_overtaken_without_end(ticks, capacity):
    """Only by what becomes due within ten seconds for each step of priority."""
    run(ticks, capacity)
    highest = max(tick.priority for tick in ticks)
    for tick in ticks:
        horizon = tick.due + AGEING * (highest - tick.priority)
        before = sum(other.left(tick.due) for other in ticks if other.due <= tick.due and other is not tick)
        later = sum(other.length for other in ticks if tick.due < other.due < horizon)
        assert capacity * (tick.started - tick.due) <= before + later + ROUNDING


@settings(max_examples=examples(60))
@given(loads, capacities)
def test_what_waits_starts_by_rank(ticks, capacity):
    """Nothing starts while something that was due before, and ranks higher, still waits."""
    run(ticks, capacity)
    for tick in ticks:
        for other in ticks:
            if other.due < tick.started - ROUNDING and other.started > tick.started + ROUNDING:
                assert tick.rank <= other.rank


@settings(max_examples=examples(60))
@given(loads, capacities)
def test_with_equal_priority_the_oldest_goes_first(ticks, capacity):
    """Plain first come, first served; ties in the order in which the jobs were added."""
    for tick in ticks:
        tick.priority = 3
    run(ticks, capacity)
    by_due = sorted(ticks, key=lambda tick: tick.due)
    starts = [round(tick.started, 3) for tick in by_due]
    assert starts == sorted(starts)


def test_the_bound_is_not_idle():
    """A load that comes close to it: the bound is no number that would hold for anything."""
    ticks = [Tick(1, 10, 0), *(Tick(due, 10, 1) for due in range(1, 201, 12))]
    run(ticks, 1)
    rate, burst = 10 / 12, 20
    bound = burst / (1 - rate)
    assert 10 <= ticks[0].started - ticks[0].due <= bound
