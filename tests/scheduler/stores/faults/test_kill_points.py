"""Kill -9 at every point between "due" and "recorded", and what the next agent makes of it."""

import json
import time
from collections import defaultdict
from itertools import pairwise

import pytest

from kit import check_every_slot

pytestmark = pytest.mark.slow

FLOOR = 0.1
"""As in crashing_agent.py."""

SLOT = 50_000
"""Microseconds between two starts of these jobs."""
JOBS = [
    {"schedule": "@every 50ms", "id": "once"},
    {"schedule": "@every 50ms", "id": "again", "delivery": "at_least_once"},
]
KILLED = -9


class Story:
    """Agents that work on the same store one after the other, and what is left of them."""

    def __init__(self, agents, place, effects):
        self._agents = agents
        self._place = place
        self._effects = effects
        self._common = {"store": place.spec, "effects": str(effects), "add": JOBS, "runs": 1}

    def live(self, **config):
        """Return how it ended, and when it began."""
        began = time.time()
        return self._agents.live(**self._common | config), began

    def content(self):
        return self._place.content()

    def notes(self, kind):
        """Return what agents have noted, without the kind of note."""
        lines = self._effects.read_text().splitlines() if self._effects.exists() else []
        return [words[1:] for words in map(json.loads, lines) if words[0] == kind]

    def runs(self):
        """Return (due, attempt, fence, instant) of each run that has begun, by job, in that order."""
        found = defaultdict(list)
        for job_id, *rest in self.notes("run"):
            found[job_id].append(tuple(rest))
        return found


@pytest.fixture
def story(agents, place, tmp_path):
    return Story(agents, place, tmp_path / "effects")


def check_what_always_holds(story, crashes):
    """Whatever the point: `crashes` are those of each job."""
    rows, ticks = story.content()
    runs = story.runs()
    for job in JOBS:
        records = {tick.due_us: tick for tick in ticks[job["id"]]}
        begun = runs[job["id"]]
        assert {due for due, *_ in begun} <= {due for due, tick in records.items() if tick.attempt}
        assert len({(due, attempt) for due, attempt, *_ in begun}) == len(begun)
        assert all(later[2] > earlier[2] for earlier, later in pairwise(begun))
        _, state = rows[job["id"]]
        assert state.runs == sum(tick.attempt for tick in records.values())
        assert state.successes == sum(tick.outcome == "succeeded" for tick in records.values())
        assert state.failures == 0
        assert state.runs - state.successes == crashes
        assert {tick.outcome for tick in records.values() if tick.attempt} <= {"succeeded", "crashed"}
        assert all(tick.outcome == "missed" or tick.owed for tick in records.values() if not tick.attempt)
        check_every_slot(records.values(), SLOT)


def dues_of_the_killed(story):
    """Return the tick of each job that stands as running."""
    _, ticks = story.content()
    return {job_id: tick.due_us for job_id, found in ticks.items() for tick in found if tick.outcome == "running"}


def check_the_crashed(story, dues, begun, recovery):
    """One tick of each job was lost after it had begun so many times; an agent that began at `recovery` found it."""
    _, ticks = story.content()
    runs = story.runs()
    (once,) = (tick for tick in ticks["once"] if tick.due_us == dues["once"])
    assert once.outcome == "crashed"
    assert "died" in once.error
    assert [attempt for due, attempt, *_ in runs["once"] if due == dues["once"]] == [1] * begun
    (again,) = (tick for tick in ticks["again"] if tick.due_us == dues["again"])
    assert (again.outcome, again.attempt) == ("succeeded", 2)
    assert [attempt for due, attempt, *_ in runs["again"] if due == dues["again"]] == [1] * begun + [2]
    later = [instant for job in runs.values() for *_, instant in job if instant > recovery]
    assert min(later) >= recovery + FLOOR


@pytest.mark.parametrize(
    ("point", "begun"),
    [
        ("after mark", 0),
        ("as the runs begin", 1),
        ("in the middle of the runs", 1),
    ],
)
def test_a_run_that_is_killed_is_a_crash(story, point, begun):
    """At most once: it is recorded so, and not run again. At least once: it is tried again after the floor."""
    assert story.live(point=point)[0] == KILLED
    dues = dues_of_the_killed(story)
    assert set(dues) == {"once", "again"}
    status, recovery = story.live(attempts=2)
    assert status == 0
    check_the_crashed(story, dues, begun, recovery)
    check_what_always_holds(story, crashes=1)


@pytest.mark.parametrize("point", ["as the last run ends", "before end"])
def test_an_end_that_was_not_committed_is_a_crash(story, point):
    """Nobody can know how far it came."""
    assert story.live(point=point, runs=2)[0] == KILLED
    dues = dues_of_the_killed(story)
    assert dues
    assert story.live(attempts=2 if "again" in dues else 1)[0] == 0
    _, ticks = story.content()
    for job_id, due in dues.items():
        (tick,) = (tick for tick in ticks[job_id] if tick.due_us == due)
        assert (tick.outcome, tick.attempt) == {"once": ("crashed", 1), "again": ("succeeded", 2)}[job_id]


def test_an_end_that_was_committed_stays(story):
    """Though nobody was told of it."""
    assert story.live(point="after end", runs=2)[0] == KILLED
    _, ticks = story.content()
    ended = [tick for found in ticks.values() for tick in found if tick.outcome == "succeeded"]
    assert ended
    assert story.live()[0] == 0
    _, ticks = story.content()
    runs = story.runs()
    for tick in ended:
        assert tick in ticks[tick.job_id]
        assert [attempt for due, attempt, *_ in runs[tick.job_id] if due == tick.due_us] == [1]


def test_a_tick_whose_mark_was_not_committed_has_not_begun(story):
    """It is due still, and runs or is missed like after any downtime."""
    assert story.live(point="before mark")[0] == KILLED
    assert not story.runs()
    rows, ticks = story.content()
    assert not ticks
    dues = {job_id: state.next_us for job_id, (_, state) in rows.items()}
    assert story.live()[0] == 0
    _, ticks = story.content()
    assert {job_id: ticks[job_id][0].due_us for job_id in dues} == dues
    check_what_always_holds(story, crashes=0)


@pytest.mark.parametrize(("point", "jobs"), [("before add", set()), ("after add", {"once", "again"})])
def test_an_added_job_is_there_with_its_commit(story, point, jobs):
    """Not earlier, and whether or not the answer was heard."""
    assert story.live(point=point)[0] == KILLED
    assert not story.notes("done")
    assert set(story.content()[0]) == jobs
    assert story.live()[0] == 0
    check_what_always_holds(story, crashes=0)


@pytest.mark.parametrize("verb", ["remove", "pause"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_holds_from_its_commit_on(story, when, verb):
    """Removed is gone, paused is paused, and its history stays."""
    assert story.live(point=f"{when} {verb}", then=[[verb, "once"]])[0] == KILLED
    assert ["add"] in story.notes("done")
    assert [verb] not in story.notes("done")
    rows, ticks = story.content()
    assert ticks["once"]
    match when, verb:
        case "before", _:
            assert rows["once"][0].paused is None
        case "after", "remove":
            assert set(rows) == {"again"}
        case "after", "pause":
            assert rows["once"][0].paused == "by hand"


RECOVERY = ["after open", "before crash", "after crash"]
"""Points at which a store has been changed by a recovery, or is about to be."""


@pytest.mark.parametrize(
    ("place", "point"),
    [
        *(("sqlite", point) for point in ["before open", "after pauses", "after running", "while loading"]),
        *((kind, point) for kind in ["sqlite", "postgres"] for point in RECOVERY),
    ],
    indirect=["place"],
)
def test_a_recovery_that_is_killed_is_begun_anew(story, point):
    """A crash is one crash, however often it is found; the floor is counted once it is known."""
    assert story.live(point="in the middle of the runs")[0] == KILLED
    dues = dues_of_the_killed(story)
    status, recovery = story.live(point=point)
    assert status == KILLED
    assert story.live(attempts=2)[0] == 0
    check_the_crashed(story, dues, 1, recovery)
    check_what_always_holds(story, crashes=1)


@pytest.mark.parametrize("point", ["before prune", "after prune"])
def test_pruning_that_is_killed_loses_nothing_that_is_to_be_kept(story, point):
    """It takes the oldest, and only what is over the bound."""
    assert story.live()[0] == 0
    assert story.live(point=point, retention=3)[0] == KILLED
    assert story.live(retention=3)[0] == 0
    _, ticks = story.content()
    begun = story.runs()
    for job in JOBS:
        newest = max(due for due, *_ in begun[job["id"]])
        assert newest in {tick.due_us for tick in ticks[job["id"]]}


@pytest.mark.parametrize("point", ["before last end", "after last end", "before close"])
def test_a_stop_that_is_killed_leaves_crashes_or_cancelled_runs(story, point):
    """What was cut off is recorded as cancelled, unless the process died before that."""
    assert story.live(point=point, stubborn=True)[0] == KILLED
    dues = {job_id: due for job_id, ((due, *_), *_) in story.runs().items()}
    assert set(dues) == {"once", "again"}
    outcome = "running" if point.startswith("before last") else "cancelled"
    _, ticks = story.content()
    assert {tick.outcome for job_id, due in dues.items() for tick in ticks[job_id] if tick.due_us == due} == {outcome}
    assert story.live(attempts=2)[0] == 0
    attempts = {
        job_id: [attempt for due, attempt, *_ in runs if due == dues[job_id]] for job_id, runs in story.runs().items()
    }
    assert attempts == {"once": [1], "again": [1, 2]}


@pytest.mark.parametrize(
    "options",
    [
        {"overlap": "queue"},
        {"overlap": "queue", "missed": "all", "catch_up": 2},
        {"overlap": "allow", "max_running": 3},
    ],
)
def test_ticks_that_wait_when_the_agent_is_killed_are_not_passed_over(story, options):
    """Those that wait for the end of a run, and those that wait for room, run later or are missed, on record."""
    jobs = [{**job, **options} for job in JOBS]
    assert story.live(point="after some slots", stubborn=True, add=jobs, limit=1)[0] == KILLED
    assert story.live(add=jobs, point="after mark", passes=4, takes=0.12, limit=2, runs=100)[0] == KILLED
    assert story.live(add=jobs)[0] == 0
    _, ticks = story.content()
    for job in JOBS:
        check_every_slot(ticks[job["id"]], SLOT)
