"""Parts of batches that stand aside until nobody has their rows locked any more."""

import pytest

from scheduler._journal import Aside, Sealed
from scheduler.stores import Batch, StoredJob, StoredState, StoredTick


def sealed(*ids, flushed=(), together=(), marks=(), ended=(), **batch):
    """Make a batch with states of these jobs, with marks and ends of ticks of some."""
    states = {id: StoredState(id) for id in ids}
    ticks = {
        "marks": [StoredTick(id, due, 1, due, "running") for id, due in marks],
        "ended": [StoredTick(id, due, 1, due, "succeeded") for id, due in ended],
    }
    return Sealed(Batch(states=states, **ticks, **batch), [], list(flushed), together)


def jobs(part):
    return None if part is None else part.job_ids()


@pytest.fixture
def aside():
    return Aside()


def test_what_is_about_locked_jobs_stands_aside_and_the_rest_does_not(aside):
    """Whoever waits for all of it waits for what stands aside, too."""
    kept, rest = aside.keep(sealed("a", "b", "c", flushed=[print]), {"b"})
    assert (jobs(kept), jobs(rest)) == (["b"], ["a", "c"])
    assert (aside.parts[0].flushed, rest.flushed) == ([print], [])


def test_what_comes_later_of_such_a_job_waits_behind_it(aside):
    """Else an older state would take the place of a newer one."""
    aside.keep(sealed("a", "b", marks=[("b", 1)]), {"b"})
    _, rest = aside.keep(sealed("a", "b", ended=[("b", 1)]))
    assert jobs(rest) == ["a"]
    assert [(len(part.batch.marks), len(part.batch.ended)) for part in aside.parts] == [(1, 0), (0, 1)]
    assert [jobs(part) for part in aside.free(())] == [["b"], ["b"]]
    assert aside.parts == []


def test_what_may_be_committed_at_once_is_one_part(aside):
    """A row that is locked for an hour makes no thousands of them."""
    for due in range(1, 100):
        aside.keep(sealed("b", ended=[("b", due)]), {"b"})
    assert [len(part.batch.ended) for part in aside.parts] == [99]


def test_rows_that_were_asked_for_are_a_part_of_their_own(aside):
    """A row may be put, and then removed."""
    aside.keep(sealed("b", jobs={"b": StoredJob("b", "task", "@daily")}), {"b"})
    aside.keep(sealed(jobs={"b": None}), {"b"})
    assert [next(iter(part.batch.jobs.values())) is None for part in aside.parts] == [False, True]


def test_what_belongs_together_stands_aside_together(aside):
    """Something would be wrong if one were durable without the other."""
    kept, rest = aside.keep(sealed("a", "b", "c", together=["a", "b"]), {"b"})
    assert (jobs(kept), kept.together, jobs(rest)) == (["a", "b"], ["a", "b"], ["c"])


def test_what_is_free_again_goes_and_the_rest_stays(aside):
    """In the order in which it came."""
    aside.keep(sealed("a", "b", marks=[("a", 1)]), {"a", "b"})
    aside.keep(sealed("a", "b", ended=[("a", 1)], flushed=[print]))
    freed = aside.free({"b"})
    assert [jobs(part) for part in freed] == [["a"], ["a"]]
    assert [jobs(part) for part in aside.parts] == [["b"], ["b"]]
    assert [part.flushed for part in aside.parts] == [[], [print]]
    last = aside.free(())
    assert [part.flushed for part in last] == [[], [print]]


def test_pauses_of_all_jobs_wait_for_no_job(aside):
    """They are about no job in particular."""
    _, rest = aside.keep(sealed("b", pauses={"*": None}), {"b"})
    assert list(rest.batch.pauses) == ["*"]
    assert aside.keep(sealed("b"))[1] is None
