"""What in a row makes no sense costs its own job, tick or pause, as little of it as can be, and is told once."""

import pytest

from scheduler import JobState, Outcome, Retention, Scheduler
from scheduler._journal.sanitize import LATEST_US, MAX_NUMBER, sound_pause, sound_state, sound_tick
from scheduler._values.telling import LONGEST_ERROR
from scheduler.stores import Batch, StoredJob, StoredPause, StoredState, StoredTick
from scheduler.stores.memory import MemoryStore

TICK = StoredTick("a", 1_000_000, 1, 7, "failed", 1_000_001, 1_000_002, 0.5, "error", "trace", result="[1]")
STATE = StoredState(
    "a", 5, True, 6, 2, 7, 8, 10, 5, 4, 3, 2, 1, 1, 0, 1.5, 0.5, 0.25, 0.1, 1, 2, 3, "failed", "x", "@every 1s", False
)
COUNTS_ANEW = {
    **dict.fromkeys(("runs", "successes", "failures", "timeouts", "cancellations", "missed"), 0),
    **dict.fromkeys(("consecutive_failures", "consecutive_crashes"), 0),
    **dict.fromkeys(("total_duration", "total_duration_failures", "lateness_sum", "lateness_max"), 0.0),
    "missed_is_exact": True,
}
NO_RETRY = dict.fromkeys(("retry_due_us", "retry_attempt", "retry_at_us"))


@pytest.mark.parametrize(
    "row",
    [
        STATE,
        StoredState("b"),
        StoredState("b", missed_is_exact=False),
        STATE._replace(next_us=LATEST_US, runs=MAX_NUMBER),
    ],
)
def test_a_state_that_makes_sense_is_left_alone(row):
    """The same object."""
    assert sound_state(row)[0] is row


@pytest.mark.parametrize(
    ("wrong", "taken"),
    [
        ({"next_us": LATEST_US + 1}, {"next_us": None}),
        ({"next_us": "soon"}, {"next_us": None}),
        ({"next_us": True}, {"next_us": None}),
        ({"not_before_us": -(2**63)}, {"not_before_us": None}),
        ({"next_by_hand": 2}, {"next_by_hand": False}),
        ({"retry_attempt": 2**63 - 1}, NO_RETRY),
        ({"retry_due_us": 2**63 - 1}, NO_RETRY),
        ({"retry_at_us": None}, NO_RETRY),
        ({"runs": 2**63 - 1}, COUNTS_ANEW),
        ({"runs": -1}, COUNTS_ANEW),
        ({"runs": 8}, COUNTS_ANEW),
        ({"missed": None}, COUNTS_ANEW),
        ({"total_duration": float("nan")}, COUNTS_ANEW),
        ({"lateness_max": float("inf")}, COUNTS_ANEW),
        ({"lateness_sum": b"1"}, COUNTS_ANEW),
        ({"last_start_us": 1.5}, {"last_start_us": None}),
        ({"last_outcome": "no outcome"}, {"last_outcome": None}),
        ({"last_outcome": []}, {"last_outcome": None}),
        ({"last_error": 7}, {"last_error": None}),
        ({"next_of": 7}, {"next_of": None}),
        ({"missed_is_exact": None}, {"missed_is_exact": False}),
        ({"missed_is_exact": "yes"}, {"missed_is_exact": False}),
    ],
)
def test_of_a_state_what_makes_no_sense_is_left_out(wrong, taken):
    """Counts begin anew together, for they add up; a retry is whole or none."""
    assert sound_state(STATE._replace(**wrong))[0] == STATE._replace(**taken)


@pytest.mark.parametrize(
    ("wrong", "taken"),
    [
        ({"attempt": 2**40}, {"attempt": 1}),
        ({"fence": None}, {"fence": 0}),
        ({"started_us": 2**63 - 1}, {"started_us": None}),
        ({"ended_us": "x"}, {"ended_us": None}),
        ({"lateness": float("nan")}, {"lateness": None}),
        ({"error": b"x"}, {"error": None}),
        ({"reason": "no reason"}, {"reason": None}),
        ({"count": 0}, {"count": 1}),
        ({"last_due_us": -(2**63)}, {"last_due_us": None}),
        ({"result": "{"}, {"result": None}),
        ({"result": "[" * 2_000}, {"result": None}),
        ({"result": f'"{"x" * 10_000}"'}, {"result": None}),
        ({"owed": "x"}, {"owed": False}),
    ],
)
def test_of_a_record_what_makes_no_sense_is_left_out(wrong, taken):
    """The rest is told."""
    tick, found = sound_tick(TICK._replace(**wrong))
    assert tick == TICK._replace(**taken)
    assert [each.column for each in found] == list(wrong)


@pytest.mark.parametrize("wrong", [{"job_id": None}, {"due_us": 2**62}, {"due_us": None}, {"outcome": "?"}])
def test_a_record_that_nobody_can_tell_is_left_out(wrong):
    """Whose it is, when it was due, how it ended."""
    assert sound_tick(TICK._replace(**wrong))[0] is None


def test_long_texts_are_cut_where_they_come_in():
    """An older release stored them whole."""
    tick, found = sound_tick(TICK._replace(error="x" * 10**6, trace="x" * 10**6))
    assert len(tick.error) == LONGEST_ERROR
    assert "cut: 1000000" in tick.trace
    assert found == []


def test_a_pause_whose_end_makes_no_sense_holds_until_it_is_ended():
    """In nanoseconds it would lie in another calendar: who wrote it wanted a pause."""
    pause = StoredPause("tag:x", "upgrade", 5, 10**18)
    assert sound_pause(pause)[0] == pause._replace(until_us=None)
    assert sound_pause(pause._replace(since_us=None, reason=None))[0] == StoredPause("tag:x", "paused", 0, None)
    assert sound_pause(pause._replace(scope="database"))[0] is None


async def test_what_makes_no_sense_is_warned_of_once(clock, caplog):
    """With the table, the row, the column and the value, however often it is read."""
    store = MemoryStore()
    store.open(0, lambda: None)
    store.commit(
        Batch(
            jobs={"a": StoredJob("a", "work", "@every 1s")},
            states={"a": STATE._replace(next_of=None, retry_at_us=None, next_us=2**62)},
            pauses={"tag:x": StoredPause("tag:x", "upgrade", 0, 10**18)},
            ended=[TICK, TICK._replace(due_us=5, outcome="?")],
        )
    )
    store.close()
    s = Scheduler(store=store, clock=clock, retention=Retention(age=None))
    s.register("work", lambda: None, inline=True)
    tagged = s.add("work", "@every 1s", id="b", tags=["x"])
    async with s:
        await clock.travel(3)
        for _ in range(3):
            assert [record.outcome for record in await s.history("a", before=None)][-1] is Outcome.FAILED
        assert s.get("a").statistics().runs > 10
        assert tagged.state is JobState.DISABLED
        assert [pause.until for pause in s.pauses()] == [None]
    said = [record.getMessage() for record in caplog.records if record.name == "scheduler._restore.row_reader"]
    assert sorted(said) == [
        "job_state 'a': next_us is 4611686018427387904: taken for None",
        "pause 'tag:x': until_us is 1000000000000000000: no instant in microseconds: it holds until it is ended",
        "tick 'a', 5: outcome is '?': the record is left out",
    ]
