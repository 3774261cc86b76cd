"""The journal by itself: what is noted, and what a batch holds of it."""

import pytest

from kit import nothing
from schedule import Every
from scheduler import MissedReason, Pause, Scheduler
from scheduler._journal import MOST_JOBS, Journal, Sealed, missed_tick, row_of
from scheduler._plan import Timeline
from scheduler.stores import Act, Batch, JobPause, Placed, StoredChange, StoredState, StoredTick
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

EVERY = Every(100, anchor=START)
PAUSE = Pause("*", "maintenance", START)


def job_of(clock, id="a"):
    """Make a job that is stored. Its scheduler does not run: what is noted of it here, nobody else notes."""
    s = Scheduler(clock=clock, store=MemoryStore())
    s.register("nothing", nothing)
    return s.add("nothing", EVERY, id=id)


@pytest.fixture
def changes():
    """How often the journal has said that there is something to send."""
    return []


@pytest.fixture
def journal(clock, changes):
    """Make a journal that is kept, of a store that has been opened once."""
    made = Journal(Timeline(clock), clock.monotonic)
    made.keep(lambda: changes.append(len(made.pending)))
    made.open(1)
    return made


def test_without_a_store_nothing_is_noted(clock):
    """No verb of a job or of the scheduler leaves anything to send."""
    s = Scheduler(clock=clock)
    job = s.add(nothing, EVERY, tags=["x"])
    for change in (job.pause, job.resume, s.pause, s.resume, job.run_now, job.remove):
        change()
    s.pause("x")
    assert len(s._core.journal.pending) == 0


def test_who_sends_is_told_of_each_note(clock, journal, changes):
    """Each note and each flush says so; a job that is noted already is noted once."""
    job = job_of(clock)
    journal.touch(job)
    journal.touch(job)
    journal.remember_pause(job)
    journal.flush(print)
    assert changes == [1, 1, 2, 3]


def is_newer(journal, id):
    """Whether a note of the job wins over its removal by another."""
    return journal.is_newer(id, None)


def test_a_state_is_written_down_when_its_batch_is_sealed(clock, journal):
    """Not when it is noted: one row for however many changes, as the job stands by then."""
    job = job_of(clock)
    journal.touch(job)
    job.counts().runs = 7
    journal.seal()
    job.counts().runs = 8
    assert [sealed.batch.states["a"].runs for sealed in journal.sealed] == [7]
    assert len(journal.pending) == 0


def test_what_is_noted_after_sealing_stands_in_the_next_batch(clock, journal):
    """A sealed batch takes nothing more, and what it holds is unsaved until it is taken."""
    one, other = job_of(clock), job_of(clock, "b")
    journal.remember(one)
    journal.seal()
    journal.remember(other)
    assert (is_newer(journal, "a"), is_newer(journal, "b"), journal.unsaved) == (True, True, 4)
    assert [*journal.taken().batch.jobs] == ["a"]
    journal.seal()
    assert [*journal.taken().batch.jobs] == ["b"]
    assert (is_newer(journal, "a"), is_newer(journal, "b"), journal.unsaved) == (False, False, 0)


def test_a_change_gives_way_to_a_removal_and_a_row_that_is_put_does_not(clock, journal):
    """A change wins over another row only. In one batch with the whole row, it is part of that."""
    one, other = job_of(clock), job_of(clock, "b")
    journal.remember(one, is_change=True)
    journal.remember(other)
    journal.remember(other, is_change=True)
    for _ in range(2):
        assert (is_newer(journal, "a"), is_newer(journal, "b")) == (False, True)
        assert journal.is_newer("a", row_of(one))
        journal.seal()
    assert [sealed.batch.changed for sealed in journal.sealed] == [{"a"}, set()]


def test_a_row_that_is_put_after_a_change_is_put(clock, journal):
    """It was asked for with on_conflict="update", or in the place of a removed job."""
    one = job_of(clock)
    journal.remember(one, is_change=True)
    journal.remember(one)
    journal.seal()
    assert (journal.sealed[0].batch.changed, is_newer(journal, "a")) == (set(), True)


def test_a_removal_that_waits_is_not_forgotten_for_a_change(clock, journal):
    """Another row is: the change comes later."""
    one, other = job_of(clock), job_of(clock, "b")
    journal.unfollowed |= {"a": None, "b": row_of(other)}
    journal.remember(one, is_change=True)
    journal.remember(other, is_change=True)
    assert journal.unfollowed == {"a": None}
    journal.remember(one)
    assert journal.unfollowed == {}


def test_a_change_of_a_row_that_no_store_could_take_puts_it_whole(clock, journal):
    """There may be none. From then on it is there."""
    one = job_of(clock)
    journal.remember(one)
    journal.seal()
    journal.lost()
    for changed in (set(), {"a"}):
        journal.remember(one, is_change=True)
        journal.seal()
        assert journal.taken().batch.changed == changed


def test_a_change_that_waits_behind_a_row_that_no_store_could_take_puts_it_whole(clock, journal):
    """Whether it is sealed already or not: the job's row would never be there otherwise."""
    one = job_of(clock)
    journal.remember(one)
    journal.seal()
    journal.remember(one, is_change=True)
    journal.seal()
    journal.remember(one, is_change=True)
    journal.lost()
    journal.seal()
    assert [sealed.batch.changed for sealed in journal.sealed] == [set(), set()]


def test_a_batch_that_is_taken_apart_keeps_what_it_says_of_changes(clock, journal):
    """Each part says it of its own jobs. So does what is kept when the node joins again."""
    jobs = [job_of(clock, id) for id in "abc"]
    for job in jobs:
        journal.remember(job, is_change=job.id != "b")
    journal.seal()
    assert journal.take_apart()
    assert [sealed.batch.changed for sealed in journal.sealed] == [{"a"}, set(), {"c"}]
    journal.disown()
    journal.seal()
    assert journal.taken().batch.changed == {"a", "c"}


@pytest.mark.parametrize(
    "note",
    [
        lambda journal, _: journal.remember_scope("*", PAUSE),
        lambda journal, _: journal.remember_scope("*", None),
        lambda journal, job: journal.ask(job, Act.RUN),
        lambda journal, job: journal.remember_pause(job),
        lambda journal, job: journal.delete_row(job, is_finished=True),
        lambda journal, job: journal.delete_row(job),
        lambda journal, job: journal.crashed(StoredTick(job.id, 0, 1, 1, "running"), 0, "it crashed"),
        lambda journal, job: journal.owe(job, 0, MissedReason.STOPPED),
        lambda journal, job: journal.done(job, 7),
        lambda journal, job: journal.placed(Placed(job.id, 0, "a server", 7, 0)),
        lambda journal, _: journal.flush(print),
    ],
)
def test_each_note_is_unsaved_until_it_is_durable(clock, journal, note):
    """Whatever it is, and sealed or not: its loss at the end is told."""
    note(journal, job_of(clock))
    noted = journal.unsaved
    assert noted
    journal.seal()
    assert journal.unsaved == noted
    journal.taken()
    assert journal.unsaved == 0


def test_of_a_new_job_that_is_removed_before_it_is_sent_nothing_is_left(clock, journal):
    """Jobs of messages come and go while a store is away, for as long as it is. One that was sent has to be removed."""
    one, other = job_of(clock), job_of(clock, "b")
    journal.add(one, None, "error")
    journal.remember_pause(one)
    journal.delete_row(one)
    assert (len(journal.pending), is_newer(journal, "a")) == (0, False)
    journal.add(one, None, "error")
    journal.add(other, None, "error")
    journal.seal()
    journal.delete_row(one)
    assert journal.pending.jobs == {"a": None}
    journal.add(one, None, "error")  # another one of that id, whose row is still on its way
    journal.delete_row(one)
    assert journal.pending.jobs == {"a": None}


def test_missed_ticks_in_a_row_are_one_record_with_a_fence_of_its_own(clock, journal):
    """Ticks that are missed for another reason have another record, with a greater fence."""
    job = job_of(clock)
    for due_us in (100, 200, 300):
        journal.missed(job, missed_tick(job.id, due_us, due_us, 1, MissedReason.OVERLAP))
    journal.missed(job, missed_tick(job.id, 400, 400, 1, MissedReason.LATE))
    journal.seal()
    ended = journal.taken().batch.ended
    assert [(tick.due_us, tick.last_due_us, tick.count, tick.reason) for tick in ended] == [
        (100, 300, 3, "overlap"), (400, 400, 1, "late"),
    ]  # fmt: skip
    assert ended[0].fence < ended[1].fence


def test_a_row_that_is_written_here_wins_over_what_others_wrote_before(clock, journal):
    """And of a pause that is noted here the rest of their row stays."""
    one, other = job_of(clock), job_of(clock, "b")
    journal.remember(one)
    row = journal.pending.jobs["a"]
    journal.unfollowed.update(a=row._replace(name="theirs"), b=row._replace(id="b", name="theirs", paused="theirs"))
    journal.remember(one)
    journal.remember_pause(other)
    assert journal.unfollowed == {"b": row._replace(id="b", name="theirs", paused=None)}


def test_a_batch_is_taken_apart_job_by_job_once(clock, journal):
    """Taking apart what holds one job each changes nothing."""
    for id in "ab":
        journal.remember(job_of(clock, id))
    journal.seal()
    assert journal.take_apart()
    assert [[*sealed.batch.jobs] for sealed in journal.sealed] == [["a"], ["b"]]
    assert not journal.take_apart()


def test_what_an_end_has_brought_about_stays_with_it_in_pieces_of_a_batch(clock, journal):
    """And so do all rows, which somebody has asked for together."""
    jobs = [job_of(clock, f"job-{number}") for number in range(5)]
    for job in jobs:
        journal.ended(job, StoredTick(job.id, 1, 1, 1, "succeeded"))
        journal.pending.telling = job.id
        if job.id == "job-3":
            journal.remember(job_of(clock, "told"))
        journal.pending.telling = None
    journal.remember_scope("*", None)
    journal.flush(print)
    journal.seal()
    assert journal.take_apart(2)
    ended = [[tick.job_id for tick in sealed.batch.ended] for sealed in journal.sealed]
    assert ended == [["job-3"], ["job-0", "job-1"], ["job-2", "job-4"]]
    assert [[*sealed.batch.jobs, *sealed.batch.pauses] for sealed in journal.sealed] == [["told", "*"], [], []]
    assert [sealed.flushed for sealed in journal.sealed] == [[], [], [print]]
    assert not journal.take_apart(2)


class Counted(str):
    """An id that counts how often it is compared."""

    __slots__ = ()
    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def test_taking_a_batch_apart_takes_each_part_once():
    """Not all of it is looked through for each job: there may be thousands, and the loop must not stand still."""
    count = 300
    ids = [Counted(f"job-{number}") for number in range(count)]
    ticks = [StoredTick(id, 1, 1, number, "succeeded") for number, id in enumerate(ids)]
    batch = Batch(
        jobs=dict.fromkeys(ids),
        states={id: StoredState(id) for id in ids},
        pauses={"*": None},
        ended=ticks,
        marks=ticks,
        paused={id: JobPause() for id in ids},
        finished=dict.fromkeys(ids, "@daily"),
    )
    Counted.compared = 0
    pauses, *parts = Sealed(batch, [], [print]).by_job()
    assert Counted.compared < 10 * count
    assert (pauses.batch, pauses.flushed) == (Batch(pauses={"*": None}), [])
    assert [part.job_ids() for part in parts] == [[id] for id in ids]
    one = ids[7]
    assert parts[7].batch == Batch(
        jobs={one: None},
        states={one: StoredState(one)},
        ended=[ticks[7]],
        marks=[ticks[7]],
        paused={one: JobPause()},
        finished={one: "@daily"},
    )
    assert [part.flushed for part in parts] == [[]] * (count - 1) + [[print]]


def test_who_changed_a_job_is_written_with_the_job(clock, journal):
    """Also when a batch is taken apart. A change of a scope goes with the pauses."""
    for id in "ab":
        journal.remember(job_of(clock, id))
        journal.made(StoredChange(0, 1, "pause", f"job:{id}", "ann"))
    journal.made(StoredChange(0, 1, "pause", "*"))
    journal.made(StoredChange(0, 1, "remove", "job:gone"))
    journal.seal()
    (sealed,) = journal.sealed
    numbers = [made.number for made in sealed.batch.made]
    assert numbers == sorted({*numbers})
    assert 0 not in numbers
    assert sealed.size == len(sealed.batch.jobs) + len(sealed.batch.states) + len(numbers)
    assert journal.take_apart()
    of_parts = [[made.scope for made in part.batch.made] for part in journal.sealed]
    assert of_parts == [["*", "job:gone"], ["job:a"], ["job:b"]]
    kept, rest = sealed.apart(["a"])
    assert [[made.scope for made in part.batch.made] for part in (kept, rest)] == [
        ["job:a"],
        ["job:b", "*", "job:gone"],
    ]


def test_who_changed_a_job_waits_for_a_row_that_waits(clock, journal):
    """A batch takes some thousands of rows. Numbers once given stay: a repeated batch is known by them."""
    some = [job_of(clock, f"job-{number:05}") for number in range(3)]
    for number in range(MOST_JOBS):
        journal.pending.put(f"row-{number}", None)
    for job in some:
        journal.remember(job)
        journal.made(StoredChange(0, 1, "add", f"job:{job.id}"))
    journal.made(StoredChange(0, 1, "pause", "*"))
    journal.seal()
    assert [made.scope for made in journal.sealed[0].batch.made] == ["*"]
    waiting = list(journal.pending.made)
    journal.seal()
    assert journal.sealed[1].batch.made == waiting
    assert [made.job_id for made in waiting] == [job.id for job in some]


def test_who_changed_what_is_kept_by_a_node_that_was_taken_for_dead(clock, journal):
    """The change was made, whoever has the job now."""
    journal.made(StoredChange(0, 1, "pause", "job:a", "ann"))
    journal.seal()
    journal.made(StoredChange(0, 2, "resume", "job:a", "ann"))
    journal.disown()
    assert [made.act for made in journal.pending.made] == ["pause", "resume"]
