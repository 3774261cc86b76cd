"""Which shards are handed on next: pure decisions about jobs that are given."""

from types import SimpleNamespace

from scheduler._memory.portions import MOST_IN_VAIN, MOST_JOBS, MOVES, Portions


def job(due=None, **going_on):
    parts = dict.fromkeys(["runs", "backlog", "threads", "asked"], ()) | going_on
    return SimpleNamespace(due=due, is_waiting=due is not None, is_durable=True, **parts)


def portions():
    return Portions(lambda job: job.is_durable)


def test_shards_of_which_nothing_starts_soon_go_first():
    """The others go once their jobs have run; those that rest, or have no job, any time."""
    shards = {1: [job(5.0), job(5.0 + MOVES / 2)], 2: [job(5.0 + 2 * MOVES)], 3: [], 4: [job()]}
    assert list(portions().next(shards, shards.get, 5.0)) == [2, 3, 4]


def test_where_something_always_starts_that_is_waited_for_a_few_times_in_vain():
    """Jobs that start each tenth of a second move as well."""
    shards = {1: [job(5.0)], 2: [job(5.1)]}
    chooser = portions()
    found = [list(chooser.next(shards, shards.get, 5.0)) for _ in range(MOST_IN_VAIN + 2)]
    assert found == [[]] * MOST_IN_VAIN + [[1, 2], [1, 2]]


def test_what_runs_or_is_not_durable_stays():
    """However often it is looked at."""
    shards = {1: [job(runs=[1])], 2: [job(backlog=[1])], 3: [job(asked=[1])], 4: [job(threads=1)], 5: [job()]}
    shards[5][0].is_durable = False
    chooser = portions()
    assert [chooser.next(shards, shards.get, 5.0) for _ in range(2 * MOST_IN_VAIN)] == [{}] * 2 * MOST_IN_VAIN


def test_a_portion_is_small_and_the_next_one_begins_where_it_ended():
    """Half of them would stand still together otherwise."""
    shards = {shard: [job()] * (MOST_JOBS // 4) for shard in range(10)}
    chooser = portions()
    assert [list(chooser.next(shards, shards.get, 5.0)) for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
