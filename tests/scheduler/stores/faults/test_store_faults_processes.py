"""An agent that is stopped for a while, and one whose disk is full."""

import json
import os
import signal
import time

import pytest

from kit import check_every_slot, wait_until

pytestmark = pytest.mark.slow

JOB = {"schedule": "@every 50ms", "id": "ticks"}
SLOT = 50_000


class Notes:
    """What an agent notes while it lives."""

    def __init__(self, path):
        self.path = path

    def __call__(self, kind):
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [words[1:] for words in map(json.loads, lines) if words[0] == kind]

    def wait_for(self, kind, count):
        wait_until(lambda: len(self(kind)) >= count)


@pytest.fixture
def notes(tmp_path):
    return Notes(tmp_path / "effects")


def check(place, notes):
    """No run is without a record, none is repeated, and no slot is passed over."""
    _, ticks = place.content()
    records = {tick.due_us: tick for tick in ticks["ticks"]}
    dues = [due for _, due, *_ in notes("run")]
    assert len(set(dues)) == len(dues)
    assert all(records[due].outcome == "succeeded" for due in dues)
    assert {tick.outcome for tick in records.values()} <= {"succeeded", "missed"}
    check_every_slot(ticks["ticks"], SLOT)


def test_an_agent_that_stood_still_goes_on_where_it_was(agents, place, notes):
    """Like after a suspended laptop: one late run, and the rest is missed on record."""
    pid = agents.start(store=place.spec, effects=str(notes.path), add=[JOB], runs=12)
    notes.wait_for("run", 4)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.5)  # the fault itself, not a wait for anything
    os.kill(pid, signal.SIGCONT)
    assert agents.wait() == 0
    check(place, notes)
    assert sum(tick.count for tick in place.content()[1]["ticks"] if tick.reason == "late") >= 5


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_on_a_full_disk_nothing_starts_until_there_is_room(agents, place, notes):
    """No file of the agent may grow any more, and later it may again."""
    assert agents.live(store=place.spec, effects=str(notes.path), add=[JOB], runs=12, full_disk=True) == 0
    ((error, begun_when_down),) = notes("down")
    ((begun_when_up,),) = notes("up")
    assert "disk" in error
    assert begun_when_up == begun_when_down
    check(place, notes)


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_an_agent_that_was_given_up_for_dead_does_nothing_any_more(agents, place, notes):
    """It stood still, another has taken its store over: it is told so, and none of its ticks runs twice."""
    common = {"store": place.spec, "effects": str(notes.path), "add": [JOB]}
    others = type(agents)()
    pid = others.start(**common, runs=1_000_000)
    notes.wait_for("run", 4)
    os.kill(pid, signal.SIGSTOP)
    assert agents.live(**common, runs=5) == 0
    assert not notes("down")
    os.kill(pid, signal.SIGCONT)
    notes.wait_for("down", 1)
    os.kill(pid, signal.SIGKILL)
    others.wait()
    others.close()
    assert "another node has taken it over" in notes("down")[0][0]
    records = {tick.due_us: tick for tick in place.content()[1]["ticks"]}
    runs = [(due, fence) for _, due, _, fence, _ in notes("run")]
    assert len({due for due, _ in runs}) == len(runs)
    assert all(records[due].fence == fence for due, fence in runs)
