"""A store in trouble, a queue, a fleet and an audit: each figure of their statistics has its series."""

from types import SimpleNamespace

import pytest
from attrs import evolve, fields

from exposed import exposed, series
from kit import nothing
from scheduler import (
    AgentStatistics,
    Audit,
    DispatchStatistics,
    FleetStatistics,
    Scheduler,
    SchedulerState,
    StoreStatistics,
    WatchdogStatistics,
)
from scheduler.metrics import render, snapshot
from timerqueue import LimitStatistics

COUNTS = {field.name: number for number, field in enumerate(fields(DispatchStatistics), 10)}
QUEUE = DispatchStatistics(**{**COUNTS, "dropped": {"sent on": 3, "stale": 4}, "refused": {"too late": 5}})
FLEET = FleetStatistics(
    me="web-1",
    agents=(AgentStatistics("web-1", 7, 12, 0.25), AgentStatistics("web-2", 8, 4, -9.0, is_off=True)),
    jobs_elsewhere=40,
    waiting={"region=eu": 2, "gpu": 3},
)
AUDIT = Audit(at=1_000.5, interval=None, planned=2, closed=1, seconds=0.75)


def figures(**changes):
    """Return what is exposed of a scheduler whose statistics have these changes."""
    taken = snapshot(Scheduler())
    return exposed(render(evolve(taken, statistics=evolve(taken.statistics, **changes))))


@pytest.mark.parametrize(("trouble", "up"), [(None, 1), ("disk full", 0)])
def test_a_store_in_trouble_is_not_up(trouble, up):
    """The words are in the log; the figure is for alerts."""
    found = figures(store=StoreStatistics(commits=5, unsaved=6, trouble=trouble))
    assert found[series("timerqueue_store_up")] == up
    assert found[series("timerqueue_store_commits_total")] == 5
    assert found[series("timerqueue_store_unsaved")] == 6


def test_each_count_of_a_queue_has_its_series():
    """Levels as gauges, and the others as counters."""
    found = figures(queue=QUEUE)
    for name, number in COUNTS.items():
        if name in {"held", "here"}:
            assert found[series(f"timerqueue_queue_{name}")] == number
        elif name not in {"dropped", "refused"}:
            assert found[series(f"timerqueue_queue_{name}_total")] == number
    assert found[series("timerqueue_queue_dropped_total", reason="sent_on")] == 3
    assert found[series("timerqueue_queue_dropped_total", reason="stale")] == 4
    assert found[series("timerqueue_queue_refused_total", reason="too_late")] == 5


def test_a_node_tells_of_itself_and_of_how_many_others_there_are():
    """Each node is scraped, so none tells what the others own."""
    found = figures(fleet=FLEET)
    fleet = {name: value for (name, _), value in found.items() if name.startswith("timerqueue_fleet")}
    assert fleet == {
        "timerqueue_fleet_nodes": 2,
        "timerqueue_fleet_nodes_off": 1,
        "timerqueue_fleet_member": 1,
        "timerqueue_fleet_shards": 12,
        "timerqueue_fleet_skew_seconds": 0.25,
        "timerqueue_fleet_jobs_elsewhere": 40,
        "timerqueue_fleet_jobs_without_node": 5,
    }
    assert [dict(labels)["node"] for name, labels in found if name == "timerqueue_info"] == ["web-1"]


def test_a_node_that_others_take_for_dead_is_no_member():
    """It owns nothing, and says so."""
    found = figures(fleet=evolve(FLEET, me=""))
    assert found[series("timerqueue_fleet_member")] == 0
    assert series("timerqueue_fleet_shards") not in found


def test_the_last_audit_is_told():
    """When, how long, and what it mended."""
    found = figures(watchdog=WatchdogStatistics(interval=300, audits=4, last=AUDIT, failing=("a", "b")))
    audit = {name: value for (name, _), value in found.items() if name.startswith("timerqueue_audit")}
    assert audit == {
        "timerqueue_audits_total": 4,
        "timerqueue_audit_failing_jobs": 2,
        "timerqueue_audit_last_timestamp_seconds": 1_000.5,
        "timerqueue_audit_last_duration_seconds": 0.75,
        "timerqueue_audit_last_mended": 3,
    }


def test_what_a_scheduler_lacks_has_no_series():
    """A 0 would say that there is a store, and that it is down."""
    names = {name for name, _ in figures(fleet=None, store=None, queue=None)}
    assert not [name for name in names if "_store_" in name or "_queue_" in name or "_fleet_" in name]


def test_members_of_a_family_are_told_together():
    """There are thousands, and they come and go."""
    limits = {
        "server:a": LimitStatistics(3, 1, 4, "server:*"),
        "server:b": LimitStatistics(3, 2, 0, "server:*"),
        "server:big": LimitStatistics(9, 9, 1),
    }
    found = figures(limits=limits)
    for label, units, used, waiting, members in [("server:*", 6, 3, 4, 2), ("server:big", 9, 9, 1, 1)]:
        assert found[series("timerqueue_limit_units", limit=label)] == units
        assert found[series("timerqueue_limit_units_used", limit=label)] == used
        assert found[series("timerqueue_limit_waiting", limit=label)] == waiting
        assert found[series("timerqueue_limit_members", limit=label)] == members


@pytest.mark.parametrize(
    ("fleet", "queue", "expected"),
    [(FLEET, None, {"ours"}), (FLEET, QUEUE, {"ours", "theirs"}), (None, None, {"ours", "theirs"})],
)
def test_the_series_of_a_job_are_with_the_node_that_has_it(fleet, queue, expected):
    """Two nodes would tell two figures of it. A job in a queue is with no node for long."""
    s = Scheduler()
    jobs = [s.add(nothing, "@every 1h", id=id) for id in ("ours", "theirs")]
    jobs[1].is_elsewhere = True
    node = SimpleNamespace(
        jobs=lambda: jobs,
        statistics=lambda: evolve(s.statistics(), fleet=fleet, queue=queue),
        state=SchedulerState.RUNNING,
    )
    jobs[1].control = SimpleNamespace(next_start=lambda _: None)
    assert {job.id for job in snapshot(node, jobs="*").jobs} == expected
