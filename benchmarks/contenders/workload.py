"""The jobs that every contender runs alike, and what is read from them.

Each class is one shape of work: `Burst` (all due at one instant), `Grid` (each at its own phase of one interval),
`Beats` (one quick job among many slow ones) and `FirstStarts` (what is overdue after a restart). All but the last
count in UTC epoch seconds, because the schedulers that we compare plan in those; `loop_time` translates for the
contenders that have only the loop's clock.
"""

import asyncio
import math
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from statistics import fmean, median

from child import Unable, Values
from meters import LoopProbe, cpu_s, peak_rss_mib

INTERVAL_S = 1.0
SAMPLE_EVERY = 20
SETTLE_S = 0.05
# From the last job added to the window, and up to a second more: what fell due meanwhile has to be made good first.
WARM_UP_S = 5
# A run may seem early by the error between two clocks; a tenth of the interval tells that from the slot before.
EARLY_S = 0.1
# A restart happens this long after the jobs were stored: those of every second are overdue then.
OVERDUE_S = INTERVAL_S + 0.1
ONE_IN = 1_000
# Prime, and no divisor of the sizes used: multiplying by it visits every slot once, in an order without a pattern.
STRIDE = 611_953


def spread(count: int, over_s: float) -> Iterator[float]:
    """`count` offsets evenly spread over `over_s` seconds, in the same shuffled order every time."""
    return (index * STRIDE % count * over_s / count for index in range(count))


def loop_time(epoch_s: float) -> float:
    """The running loop's reading at a UTC instant."""
    return asyncio.get_running_loop().time() + epoch_s - time.time()


async def sleep_until(epoch_s: float) -> None:
    """It is at least `epoch_s`; returns at once where it was already."""
    await asyncio.sleep(max(0.0, epoch_s - time.time()))


class Burst:
    """`jobs` runs due at one instant, far enough ahead for adding all of them: a second and `ahead_us` for each."""

    def __init__(self, jobs: int, *, ahead_us: float) -> None:
        self._jobs = self._left = jobs
        self._finished = asyncio.Event()
        self._ended = 0.0
        self._cpu_before = cpu_s()
        self.due = time.time() + 1 + jobs * ahead_us / 1e6

    async def job(self) -> None:
        """A run, with nothing in it but the count."""
        self._left -= 1
        if not self._left:
            self._ended = time.time()
            self._finished.set()

    async def observe(self) -> Values:
        """Call when all are added: what adding and running cost, once the last run has ended."""
        if time.time() >= self.due:
            raise Unable("was still adding at the due instant: measure again on a calmer machine")
        cpu_added = cpu_s() - self._cpu_before
        await sleep_until(self.due - 0.1)
        probe = LoopProbe(asyncio.get_running_loop())
        cpu_at_due = cpu_s()
        await self._finished.wait()
        stall = probe.stop()
        # What a contender puts off until after the last run is paid for too.
        await asyncio.sleep(SETTLE_S)
        cpu_run = cpu_s() - cpu_at_due
        return {
            "whole_us": (cpu_added + cpu_run) / self._jobs * 1e6,
            "run_us": cpu_run / self._jobs * 1e6,
            "last_after_s": self._ended - self.due,
            "stall_ms": stall * 1e3,
            "peak_mib": peak_rss_mib(),
        }


class Grid:
    """`jobs` jobs, each due every second at its own `phases[index]`, watched for `rounds` seconds.

    `note(index)` says that a run of job `index` starts now; the answer is now if its lateness is wanted, else 0. It is
    part of what is measured, so it only writes down; what follows from that is worked out when all is over.
    """

    def __init__(
        self, jobs: int, rounds: int, phases: Iterable[float] | None = None, *, sample_every: int = SAMPLE_EVERY
    ) -> None:
        self.phases = array("d", spread(jobs, INTERVAL_S) if phases is None else phases)
        self._rounds = rounds
        self._span = rounds * INTERVAL_S - EARLY_S
        self._first = array("d", [math.inf]) * jobs
        self._origin = time.time()
        self._when = array("f")  # seconds since the origin: exact to some microseconds
        self._who = array("I")
        self._lateness = array("d")
        self.note = self._noting(sample_every)

    def _noting(self, sample_every: int) -> Callable[[int], float]:
        clock, origin, first, span = time.time, self._origin, self._first, self._span
        put_when, put_who = self._when.append, self._who.append

        def note(index: int) -> float:
            now = clock()
            put_when(now - origin)
            put_who(index)
            return 0.0 if index % sample_every or not -EARLY_S <= now - first[index] < span else now

        return note

    def next_due(self, index: int) -> float:
        """The job's next slot from now on."""
        phase = self.phases[index]
        return math.ceil(time.time() - phase) + phase

    def late(self, seconds: float) -> None:
        """A run whose lateness `note` wanted was this late."""
        self._lateness.append(seconds)

    async def observe(self) -> Values:
        """Call when all are added: what `rounds` seconds of them cost and how punctual they were."""
        begin = math.ceil(time.time()) + WARM_UP_S
        for index, phase in enumerate(self.phases):
            self._first[index] = begin + phase
        await sleep_until(begin)
        cpu, started = cpu_s(), len(self._when)
        await sleep_until(begin + self._rounds * INTERVAL_S)
        cpu, started = cpu_s() - cpu, len(self._when) - started
        # The runs of the last slots may be late, but less than the tenth after which the next slot could be meant.
        await asyncio.sleep(INTERVAL_S - 2 * EARLY_S)
        peak = peak_rss_mib()
        made, drift = self._accounts()
        return {
            "runs": made,
            "runs_missing": self._rounds * len(self.phases) - made,
            "run_us": cpu / max(1, started) * 1e6,
            "core_percent": cpu / (self._rounds * INTERVAL_S) * 100,
            "peak_mib": peak,
            **self._punctuality(drift),
        }

    def _accounts(self) -> tuple[int, list[float]]:
        """The runs that belong to the window, and each job's last start against its grid, in seconds.

        A run that is later than an interval is counted for a wrong slot: no job may make up for another with those.
        """
        made, last = [0] * len(self.phases), [math.nan] * len(self.phases)
        for since_origin, index in zip(self._when, self._who, strict=True):
            since_first = self._origin + since_origin - self._first[index]
            made[index] += -EARLY_S <= since_first < self._span
            last[index] = since_first
        drift = [(since_first + EARLY_S) % INTERVAL_S - EARLY_S for since_first in last if not math.isnan(since_first)]
        return sum(min(runs, self._rounds) for runs in made), drift or [math.nan]

    def _punctuality(self, drift: list[float]) -> Values:
        late = sorted(self._lateness) or [math.nan]
        return {
            "late_p50_ms": median(late) * 1e3,
            "late_p99_ms": late[int(0.99 * (len(late) - 1))] * 1e3,
            "late_max_ms": late[-1] * 1e3,
            "drift_mean_ms": fmean(drift) * 1e3,
            "drift_max_ms": max(drift) * 1e3,
        }


class Beats:
    """The starts of the one quick job that must keep its second among the slow ones."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._starts = array("d")
        self.slow_runs = 0

    def note(self) -> None:
        """The quick job starts now."""
        self._starts.append(time.time())

    async def observe(self) -> Values:
        """The gaps between the quick job's starts over the next `seconds`."""
        begin = time.time()
        await asyncio.sleep(self._seconds + 0.5)
        end = time.time()
        starts = [start for start in self._starts if start >= begin]
        gaps = [later - earlier for earlier, later in pairwise(starts)]
        # A gap that is still open counts as soon as it is too long: a job that never ran must not look punctual.
        waiting = end - (starts[-1] if starts else begin)
        if waiting > INTERVAL_S:
            gaps.append(waiting)
        return {
            "quick_runs": len(starts),
            "gap_median_s": median(gaps),
            "gap_max_s": max(gaps),
            "slow_runs": self.slow_runs,
        }


def is_overdue(index: int) -> bool:
    """One job in a thousand is due every second; the others are every hour, each at a time of its own."""
    return not index % ONE_IN


class FirstStarts:
    """A clock that runs from its making on, and what is overdue then: when that has started."""

    def __init__(self, jobs: int) -> None:
        self._began = time.perf_counter()
        self._awaited = {index for index in range(jobs) if is_overdue(index)}
        self._all = asyncio.Event()
        self._first = self._last = math.nan

    async def job(self, index: int) -> None:
        """A run; those of the hour count as a first start, too."""
        now = self.seconds()
        if math.isnan(self._first):
            self._first = now
        if index in self._awaited:
            self._awaited.remove(index)
            if not self._awaited:
                self._last = now
                self._all.set()

    def seconds(self) -> float:
        """Since the beginning."""
        return time.perf_counter() - self._began

    async def all_started(self) -> None:
        """Return when all that was overdue has started."""
        await self._all.wait()

    def values(self) -> Values:
        """The first start, and the last first start of what was overdue."""
        return {"first_s": self._first, "overdue_s": self._last}
