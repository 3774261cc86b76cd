"""A set of jobs, while other threads change the same jobs: the jobs of others stay as they are."""

from datetime import timedelta
from threading import Thread

import pytest

from kit import PATIENCE
from schedule import At
from scheduler import InvalidJob, JobSpec, Scheduler, Synced, WrongOwner
from scheduler._sets.sync import SLICE, Sync
from spec_material import probe
from timerqueue.testing import START, ManualClock

SOON = At(START + timedelta(minutes=30))
LATER_S = 3_000


def spec(id, **options):
    """Make a spec of the task that the scheduler knows."""
    return JobSpec(id, "probe", options.pop("schedule", "@every 1h"), **options)


def ids(s):
    """Return the ids of all jobs."""
    return {job.id for job in s.jobs()}


@pytest.fixture
def clock():
    """Stand still."""
    return ManualClock()


@pytest.fixture
def s(clock):
    """Make a scheduler with one job of the owner."""
    s = Scheduler(clock=clock)
    s.register("probe", probe)
    s.sync([spec("old")], owner="cmdb")
    return s


@pytest.fixture
def meanwhile(monkeypatch):
    """Do something once a set is planned and checked, before it is carried out."""
    carry_out = Sync._carry_out

    def after(act):
        def carried_out(self, plan, owner):
            monkeypatch.setattr(Sync, "_carry_out", carry_out)
            act()
            return carry_out(self, plan, owner)

        monkeypatch.setattr(Sync, "_carry_out", carried_out)

    return after


def test_a_job_given_to_another_owner_meanwhile_stays(s, meanwhile):
    """It was to be removed as the owner's."""
    meanwhile(lambda: s.get("old").update(owner="file"))
    assert s.sync([spec("new")], owner="cmdb") == Synced(added=("new",))
    assert ids(s) == {"old", "new"}


async def test_a_change_of_the_owner_that_waits_counts(s, meanwhile):
    """Another thread asked for it, and the loop has not come to it."""
    async with s:

        def give():
            thread = Thread(target=lambda: s.get("old").update(owner="file"))
            thread.start()
            thread.join(PATIENCE)

        meanwhile(give)
        assert s.sync([spec("new")], owner="cmdb").removed == ()
        with pytest.raises(WrongOwner, match="job 'old' belongs to 'file'"):
            s.sync([spec("old")], owner="cmdb")


def test_an_id_taken_meanwhile_refuses_the_set_before_anything_changes(s, meanwhile):
    """The error is that of a set that came later."""
    meanwhile(lambda: s.add(probe, "@every 1h", id="b"))
    with pytest.raises(WrongOwner, match=r"jobs\[1\]: job 'b' belongs to code") as caught:
        s.sync([spec("a"), spec("b")], owner="cmdb")
    assert caught.value.owner is None
    assert ids(s) == {"old", "b"}


def test_a_job_removed_meanwhile_is_added_again(s, meanwhile):
    """Exactly the set is there afterwards."""
    meanwhile(lambda: s.get("old").remove())
    assert s.sync([spec("old")], owner="cmdb") == Synced(added=("old",))
    s.sync([spec("old"), spec("b")], owner="cmdb")
    meanwhile(lambda: s.get("b").remove())
    assert s.sync([spec("old"), spec("b", name="B")], owner="cmdb") == Synced(added=("b",), unchanged=("old",))


def test_a_start_that_passes_meanwhile_has_ended(s, clock, meanwhile):
    """It is not the fault of the set."""
    meanwhile(lambda: clock.advance(LATER_S))
    done = s.sync([spec("a"), spec("once", schedule=SOON), spec("b")], owner="cmdb")
    assert done == Synced(added=("a", "b"), removed=("old",), ended=("once",))
    assert ids(s) == {"a", "b"}


def test_a_present_job_whose_new_start_passes_meanwhile_refuses_the_set(s, clock, meanwhile):
    """As if the set had come later."""
    meanwhile(lambda: clock.advance(LATER_S))
    with pytest.raises(InvalidJob, match=r"jobs\[1\]: schedule: .* has no start after now") as caught:
        s.sync([spec("a"), spec("old", schedule=SOON)], owner="cmdb")
    assert caught.value.path == "jobs[1].schedule"
    assert ids(s) == {"old"}


def test_a_start_that_passes_while_a_large_set_is_carried_out_has_ended(s, clock, monkeypatch):
    """The loop works between the parts of a large set."""
    monkeypatch.setattr(Sync, "_let_the_loop_follow", lambda _: clock.advance(LATER_S))
    done = s.sync([*(spec(f"{number:02}") for number in range(SLICE)), spec("once", schedule=SOON)], owner="cmdb")
    assert (len(done.added), done.ended, done.removed) == (SLICE, ("once",), ("old",))


def test_an_id_taken_while_a_large_set_is_carried_out_lets_nothing_be_removed(s, monkeypatch):
    """What was there before stays there."""
    monkeypatch.setattr(Sync, "_let_the_loop_follow", lambda _: s.add(probe, "@every 1h", id="last"))
    with pytest.raises(WrongOwner, match=rf"jobs\[{SLICE}\]: job 'last' belongs to code"):
        s.sync([*(spec(f"{number:02}") for number in range(SLICE)), spec("last")], owner="cmdb")
    assert {"old", "00", "last"} <= ids(s)
