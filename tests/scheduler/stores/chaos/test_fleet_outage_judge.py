"""The judge of a fleet whose server has a bad day: each rule finds what breaks it, and leaves alone what does not."""

import pytest

from fleet_evidence import Event, Trouble
from fleet_judge import judge
from fleet_outage_judge import RULES, lost_with_a_failover, told_of_outages
from fleet_records import SECOND, begun, evidence, record
from fleet_recovery import gaps, recovery

BACK = 13 * SECOND
"""When a server is back that went after ten seconds."""

AWAY = Trouble("outage_stop_3", 1, 10 * SECOND, BACK)
LOST = Trouble("promote_async", 1, 10 * SECOND, BACK, lost=8 * SECOND)
STARVES = Trouble("starve", 1, 10 * SECOND, 30 * SECOND)
PUBLISHED = Trouble("publish", 1, 10 * SECOND, 20 * SECOND)
NARROW = Trouble("narrow", 5, 0, 60 * SECOND)


def each_second(*, late=(), job="once-1", **more):
    """Runs of a job of each second for a minute; those of these seconds begin that late."""
    late = dict(late)
    return [
        begun(job, second * SECOND, at=round((second + late.get(second, 0)) * SECOND), number=second + 1, **more)
        for second in range(60)
    ]


def of(*troubles, late=(), extra=(), job="once-1", **more):
    """What is left of a minute with these troubles."""
    given = {"every": SECOND, "quiet": 60 * SECOND, "troubles": troubles} | more
    return evidence(*each_second(late=late, job=job), *extra, **given)


def crash_at(second, ended=None):
    """The record of a run that was cut off."""
    fence = begun(number=second + 1).fence
    found = record("once-1", second * SECOND)._replace(fence=fence)
    return found._replace(ended=(second + 1 if ended is None else ended) * SECOND)


OF_NOBODY = crash_at(11)._replace(fence=99 << 32)
"""That of an incarnation which was gone before it had begun any run."""

ENDS = [(each.job, each.due, each.fence, each.at) for each in each_second()]
LATE = {12: 2.5, 13: 1.5}
"""Starts of an outage that begin as soon as the server is back, and a second and a half afterwards."""


@pytest.mark.parametrize(
    "innocent",
    [
        of(AWAY, late=LATE),
        of(AWAY, late={12: 2.9}),
        of(AWAY, late={40: 5}, job="limited-1", limit=99),
        of(AWAY, Trouble("kill", 2, 15 * SECOND, 16 * SECOND), late={20: 9}),
        of(AWAY, late={30: 3}),
        of(Trouble("stop", 1, 10 * SECOND, 14 * SECOND), events=[Event("lost", 14 * SECOND, 1)]),
        of(Trouble("starve", 1, 10 * SECOND, 14 * SECOND), events=[Event("lost", 14 * SECOND, 1)]),
        of(Trouble("kill", 1, 12 * SECOND, 12 * SECOND), records=[crash_at(11)]),
        of(Trouble("kill", 2, 12 * SECOND, 12 * SECOND), records=[OF_NOBODY]),
        of(LOST, records=[crash_at(9)]),
        of(LOST, extra=[begun(due=9 * SECOND, at=14 * SECOND, by=2)]),
        of(LOST, extra=[begun("limited-1", at=9 * SECOND + each, number=100 + each) for each in range(3)], ended=ENDS),
        of(LOST, Trouble("kill", 2, BACK, BACK), extra=[begun("once-2", 9 * SECOND, process=2)], ended=ENDS),
        of(STARVES, late={12: 6, 18: 1.5}),
        of(PUBLISHED, Trouble("kill", 2, 9 * SECOND, 12 * SECOND), late={15: 4}),
        of(PUBLISHED, late={15: 1.5, 40: 9}),
        of(NARROW, extra=[begun("queued_burst-1", 10 * SECOND, at=13 * SECOND, process=5)], quiet=10 * SECOND),
        of(NARROW, extra=[begun("queued_burst-1", 10 * SECOND, at=16 * SECOND, process=4)], quiet=10 * SECOND),
        of(NARROW, AWAY, extra=[begun("queued_burst-1", 10 * SECOND, at=16 * SECOND, process=5)], quiet=10 * SECOND),
        of(AWAY, events=[Event("unpruned", 12 * SECOND, 1)]),
        of(Trouble("cut", 1, 10 * SECOND, 14 * SECOND), events=[Event("unpruned", 14 * SECOND, 1)]),
    ],
)  # fmt: skip
def test_what_an_outage_may_cost_is_no_violation(innocent):
    """The same minute with one thing in it that has its reason."""
    assert [words for rule in RULES for words in rule(innocent)] == []
    assert [words for words in judge(innocent) if words.startswith(("twice", "limit", "unended"))] == []


@pytest.mark.parametrize(
    ("guilty", "words"),
    [
        (of(AWAY, events=[Event("lost", 14 * SECOND, 1)]), "healthy: agent 1 was taken for dead in good health"),
        (of(AWAY, events=[Event("lost", 14 * SECOND, 1)], names={1: "a"}), "4.0 s after the begin of outage_stop_3"),
        (
            of(STARVES, events=[Event("lost", 14 * SECOND, 2)], names={2: "b"}),
            "healthy: agent b was taken for dead in good health",
        ),
        (
            of(Trouble("kill", 2, 10 * SECOND, 14 * SECOND), events=[Event("lost", 14 * SECOND, 1)]),
            "healthy: agent 1",
        ),
        (
            of(Trouble("stop", 1, 0, SECOND), events=[Event("lost", 14 * SECOND, 1)]),
            "healthy: agent 1",
        ),
        (of(AWAY, records=[crash_at(9, 14)]), "crashed: 1 runs of agent 1 are crashes, and nothing befell it"),
        (
            of(AWAY, records=[crash_at(each) for each in (7, 8, 9)], quarantined=["once-1"]),
            "crashed: 1 jobs of agent 1 are in quarantine, such as once-1, and nothing befell it",
        ),
        (of(AWAY._replace(kind="promote_sync"), records=[crash_at(9)]), "crashed: 1 runs"),
        (of(LOST, records=[crash_at(5)]), "crashed: 1 runs"),
        (of(AWAY, records=[OF_NOBODY]), "crashed: 1 runs"),
        (of(AWAY, late=LATE | {15: 3}), "slow: 5.0 s until all starts were on time again after outage_stop_3"),
        (of(AWAY, late={11: 4.5}, within=2.0), "slow: 2.5 s until"),
        (of(AWAY._replace(kind="outage_lock_3"), late={11: 6}), "after outage_lock_3"),
        (of(LOST, late={11: 6}), "slow: 4.0 s until all starts were on time again after promote_async"),
        (of(Trouble("bulk_edit", 1, 10 * SECOND, 11 * SECOND), late={12: 6}), "slow: 7.0 s until"),
        (of(STARVES, late={22: 8}), "stranded: 1 starts were up to 8.0 s late while agent 1 could not commit"),
        (of(PUBLISHED, late={15: 4}), "sluggish: 1 starts were up to 4.0 s late beside publish"),
        (
            of(PUBLISHED._replace(kind="hold_snapshots"), late={15: 4, 16: 3}),
            "sluggish: 2 starts were up to 4.0 s late",
        ),
        (
            of(NARROW, extra=[begun("queued_burst-1", 10 * SECOND, at=16 * SECOND, process=5)]),
            "hoarded: 1 ticks waited up to 6.0 s at an agent with room for one",
        ),
        (of(PUBLISHED, events=[Event("unpruned", 15 * SECOND, 1)]), "could not be pruned, mostly beside publish"),
        (of(events=[Event("unpruned", 15 * SECOND, 1)]), "unpruned: 1 times history could not be pruned"),
        (of(Trouble("hung", 1, 50 * SECOND, 60 * SECOND)), "hung: agent 1 did not end in order"),
        (of(LOST, extra=[begun(due=7 * SECOND, at=14 * SECOND, by=2)]), "twice: once-1 due 7000000"),
        (of(LOST, extra=[begun(due=20 * SECOND, at=20 * SECOND + 5, by=2)]), "twice: once-1 due 20000000"),
        (
            of(LOST._replace(kind="promote_sync", lost=None), extra=[begun(due=9 * SECOND, at=14 * SECOND, by=2)]),
            "twice: once-1 due 9000000",
        ),
    ],
)
def test_what_an_outage_may_not_cost_is_found(guilty, words):
    """One thing at a time."""
    assert [each for each in judge(guilty) if words in each], list(judge(guilty))


def test_recovery_counts_from_the_servers_return():
    """Until the last start that was late, whenever it was due."""
    assert recovery(of(AWAY, late=LATE), AWAY.since, BACK, 60 * SECOND) == 1.5
    assert recovery(of(AWAY), AWAY.since, BACK, 60 * SECOND) == 0.0
    assert recovery(of(AWAY, late={9: 20}), AWAY.since, BACK, 20 * SECOND) == 7.0


def test_a_slot_that_is_left_out_is_not_on_time():
    """It lasts until the job begins the next time; a job that does not come back lasts to the end."""
    runs = [each for each in each_second() if each.due not in {20 * SECOND, 21 * SECOND}]
    assert list(gaps(evidence(*runs, every=SECOND), BACK, 60 * SECOND)) == [22 * SECOND, 22 * SECOND]
    assert set(gaps(evidence(*runs[:30], every=SECOND), BACK, 60 * SECOND)) == {22 * SECOND, 60 * SECOND}
    assert list(gaps(evidence(*runs, every=SECOND), 23 * SECOND, 60 * SECOND)) == []


def test_what_a_failover_has_lost_is_counted_apart():
    """Ticks that ran again for it are no violation, and are told."""
    found = of(LOST, extra=[begun(due=9 * SECOND, at=14 * SECOND, by=2)])
    assert lost_with_a_failover(found) == [("once-1", 9 * SECOND)]
    assert list(told_of_outages(found)) == [
        "all on time again after promote_async: median 0.00 s, max 0.00 s of 1",
        "failovers to a standby that was behind lost 2.0 s in all; 1 ticks of these ran again",
    ]
