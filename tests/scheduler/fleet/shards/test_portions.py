"""Which shards are handed on next: pure decisions about jobs that are given."""

from types import SimpleNamespace

from scheduler._fleet.shards.handoff_plan import (
    COMMITS,
    MOST_IN_VAIN,
    MOST_JOBS,
    MOVES,
    RESTS,
    WITHHELD,
    HandoffPlan,
)


def job(due=None, **going_on):
    parts = dict.fromkeys(["runs", "backlog", "threads", "asked"], ()) | {"goes_along": False} | going_on
    return SimpleNamespace(due=due, is_waiting=due is not None, is_durable=True, **parts)


def run(started=None, *, is_held=False):
    return SimpleNamespace(started=started, is_held=is_held)


def handoff_plan():
    return HandoffPlan(lambda job: job.is_durable, lambda job: job.goes_along)


def withheld_by(chooser, shards, now, **given):
    """Look often enough in vain; the shards whose ticks are withheld then."""
    found = [chooser.next(shards, shards.get, now, **given) for _ in range(MOST_IN_VAIN + 1)]
    assert found == [{}] * (MOST_IN_VAIN + 1)
    return sorted(shard for shard, jobs in shards.items() if set(map(id, jobs)) <= set(map(id, chooser.withheld())))


def test_shards_of_which_nothing_starts_soon_go_first():
    """The others go once their jobs have run; those that rest, or have no job, any time."""
    shards = {1: [job(5.0), job(5.0 + MOVES / 2)], 2: [job(5.0 + 2 * MOVES)], 3: [], 4: [job()]}
    assert list(handoff_plan().next(shards, shards.get, 5.0)) == [2, 3, 4]


def test_where_something_always_starts_that_is_waited_for_a_few_times_in_vain():
    """Jobs that start each tenth of a second move as well."""
    shards = {1: [job(5.0)], 2: [job(5.1)]}
    chooser = handoff_plan()
    found = [list(chooser.next(shards, shards.get, 5.0)) for _ in range(MOST_IN_VAIN + 2)]
    assert found == [[]] * MOST_IN_VAIN + [[1, 2], [1, 2]]


def test_what_runs_or_is_not_durable_stays():
    """However often it is looked at, and though nothing of it starts for a while."""
    shards = {1: [job(runs=[run()])], 2: [job(backlog=[1])], 3: [job(asked=[1])], 4: [job(threads=1)], 5: [job()]}
    shards[5][0].is_durable = False
    chooser = handoff_plan()
    assert [chooser.next(shards, shards.get, 5.0) for _ in range(4 * MOST_IN_VAIN)] == [{}] * 4 * MOST_IN_VAIN


def test_what_waits_in_a_line_goes_with_its_job():
    """Where there is always something that waits, nothing went. Not what waits for a thread, or for an answer here."""
    waits = {"runs": [run()], "goes_along": True}
    shards = {1: [job(**waits)], 2: [job(**waits, backlog=[1])], 3: [job(**waits, threads=[1])]}
    shards[4] = [job(**waits, asked=[1])]
    assert list(handoff_plan().next(shards, shards.get, 5.0)) == [1, 2]


def test_what_runs_all_the_time_is_withheld_until_it_has_ended():
    """A shard goes as soon as nothing of it runs, and then the next ones have their turn."""
    shards = {1: [job(runs=[run(5.0)]), job()], 2: [job(runs=[run(5.0)])]}
    chooser = handoff_plan()
    assert withheld_by(chooser, shards, 5.0) == [1, 2]
    shards[1][0].runs = ()
    assert list(chooser.next(shards, shards.get, 5.1)) == [1]
    assert list(chooser.withheld()) == shards[2]
    shards[2][0].runs = ()
    assert list(chooser.next({2}, shards.get, 5.2)) == [2]
    assert not chooser.are_withheld


def test_nothing_is_withheld_for_long_and_not_soon_again():
    """A run that takes an hour costs the other jobs of its shard a moment, and that ever more seldom."""
    shards = {1: [job(runs=[run()]), job()]}
    chooser, now = handoff_plan(), 5.0
    withheld_by(chooser, shards, now)
    for rest in (RESTS, 2 * RESTS, 4 * RESTS):
        now += WITHHELD
        assert chooser.next(shards, shards.get, now) == {}
        assert not chooser.are_withheld
        chooser.next(shards, shards.get, now + rest - 0.1)
        assert not chooser.are_withheld
        now += rest
        chooser.next(shards, shards.get, now)
        assert chooser.are_withheld


def test_where_a_commit_takes_long_ticks_are_withheld_for_longer():
    """A mark and an end that are on their way are waited for as long as that takes there, and not for half a second."""
    shards = {1: [job(runs=[run(is_held=True)])], 2: [job()]}
    shards[2][0].is_durable = False
    chooser = handoff_plan()
    assert withheld_by(chooser, shards, 5.0, commit_s=2.0) == [1, 2]
    assert chooser.until == 5.0 + WITHHELD + COMMITS * 2.0
    assert chooser.next(shards, shards.get, chooser.until - 0.1) == {}
    assert chooser.are_withheld
    shards[1][0].runs, shards[2][0].is_durable = (), True
    assert list(chooser.next(shards, shards.get, chooser.until)) == [1, 2]


def test_nothing_rests_that_has_waited_for_commits():
    """One took longer than those before it: what it kept waiting is withheld again at once, and what runs is not."""
    shards = {
        1: [job(runs=[run(is_held=True)])],
        2: [job()],
        3: [job(runs=[run(5.4)])],
        4: [job(runs=[run(5.0)])],
        5: [job(runs=[run()])],
    }
    shards[2][0].is_durable = False
    chooser = handoff_plan()
    assert withheld_by(chooser, shards, 5.0) == [1, 2, 3, 4, 5]
    assert chooser.next(shards, shards.get, 5.6) == {}
    assert not chooser.are_withheld
    chooser.next(shards, shards.get, 5.6)
    assert list(chooser.withheld()) == shards[1] + shards[2] + shards[3]


def test_the_longer_ticks_are_withheld_the_more_of_them_are():
    """Else who gives could never give as much as who comes has a right to: so many go in each such time."""
    shards = {shard: [job(runs=[run(is_held=True)])] * (MOST_JOBS // 4) for shard in range(100)}
    assert len(withheld_by(handoff_plan(), shards, 5.0)) == 4
    assert len(withheld_by(handoff_plan(), shards, 5.0, commit_s=WITHHELD)) == 4 * (1 + COMMITS)


def test_what_has_run_for_long_is_not_waited_for():
    """It would end in that moment by chance only."""
    shards = {1: [job(runs=[run(5.0 - 2 * WITHHELD)]), job()], 2: [job(runs=[run(5.0)])]}
    assert withheld_by(handoff_plan(), shards, 5.0) == [2]


def test_a_portion_is_small_and_the_next_one_begins_where_it_ended():
    """Half of them would stand still together otherwise."""
    shards = {shard: [job()] * (MOST_JOBS // 4) for shard in range(10)}
    chooser = handoff_plan()
    assert [list(chooser.next(shards, shards.get, 5.0)) for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]


def test_several_who_give_share_what_one_agent_can_take_up():
    """Each gave as much as if it were alone, and who joined four agents had two thousand jobs to take up at once."""
    shards = {shard: [job()] * (MOST_JOBS // 4) for shard in range(10)}
    assert [len(handoff_plan().next(shards, shards.get, 5.0, givers)) for givers in (1, 2, 4, 1_000)] == [4, 2, 1, 1]


def test_who_is_stopping_gives_all_that_can_go_at_once():
    """Nothing of it starts any more, and what waited has been left to the next owner."""
    shards = {n: [job(5.0)] for n in range(100)} | {100: [job(runs=[run(1.0)])], 101: [job(backlog=[1])]}
    assert list(handoff_plan().all_idle(shards, shards.get)) == [*range(100), 101]
    shards[0][0].is_durable = False
    assert 0 not in handoff_plan().all_idle(shards, shards.get)
