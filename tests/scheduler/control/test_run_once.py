"""Every job once, with all its subtasks, then the end."""

import anyio
import pytest

from kit import PATIENCE
from schedule import Every
from scheduler import AlreadyStopped, Outcome, Retry, Scheduler, SchedulerState, Subtask
from scheduler._control import run_once
from timerqueue import LifecycleError
from timerqueue.testing import START

EVERY_SECOND = Every("1s", anchor=START)


async def answer(value):
    """Return what it was given."""
    return value


async def ended_within_ten_seconds(s, clock):
    """Run every job once while that much time passes."""
    ended = {}
    async with anyio.create_task_group() as group:

        async def run():
            ended.update(await s.run_once())

        group.start_soon(run)
        await clock.travel(10)
    return ended


async def test_it_runs_every_job_once_and_answers_how_each_ended(clock):
    """Schedules are ignored: neither waited for nor repeated."""
    s = Scheduler(clock=clock)

    async def fail():
        raise ValueError("boom")

    s.add(answer, "@every 1d", id="good", args=(1,))
    s.add(fail, "@yearly", id="bad")
    ended = await s.run_once()
    assert {id: end.outcome for id, end in ended.items()} == {"good": Outcome.SUCCEEDED, "bad": Outcome.FAILED}
    assert ended["good"].result == 1
    assert "boom" in ended["bad"].error
    assert s.state is SchedulerState.STOPPED


async def test_it_waits_for_all_subtasks(clock):
    """A job is done when its last one is."""
    s = Scheduler(clock=clock)

    async def child(number):
        await clock.sleep(number)
        return number

    async def parent():
        return [Subtask(child, number) for number in range(3)]

    s.add(parent, EVERY_SECOND, id="a")
    ended = await ended_within_ten_seconds(s, clock)
    assert ended["a"].results == (0, 1, 2)
    assert s.get("a").statistics().runs == 1


async def test_without_jobs_it_ends_at_once(clock):
    """There is nothing to wait for."""
    assert await Scheduler(clock=clock).run_once() == {}


async def test_limits_and_retries_hold(clock):
    """What counts is the last attempt."""
    failures = iter([1, 1, 0])

    async def flaky():
        if next(failures):
            raise ValueError

    s = Scheduler(limit=1, clock=clock)
    s.add(flaky, EVERY_SECOND, id="a", retry=Retry.constant("10s", max_retries=5))
    s.add(answer, EVERY_SECOND, id="b", args=(1,))
    ended = {}
    async with anyio.create_task_group() as group:

        async def run():
            ended.update(await s.run_once())

        group.start_soon(run)
        await clock.travel(30)
    assert ended["a"].outcome is Outcome.SUCCEEDED
    assert ended["a"].attempt == 3
    assert ended["b"].outcome is Outcome.SUCCEEDED


async def test_a_job_that_is_removed_meanwhile_is_not_waited_for(clock):
    """Heartbeat waited for ever for such a one."""
    s = Scheduler(limit=1, clock=clock)

    async def remove_the_others():
        s.get("b").remove()
        s.get("c").remove()

    s.add(remove_the_others, EVERY_SECOND, id="a")
    s.add(answer, EVERY_SECOND, id="b", args=(1,))
    s.add(answer, EVERY_SECOND, id="c", args=(1,))
    assert set(await s.run_once()) == {"a"}


async def test_stop_ends_it(clock):
    """Whatever has not ended by then is not in the answer, or was cancelled."""
    s = Scheduler(clock=clock)

    async def stop():
        s.stop(grace=0)

    s.add(stop, EVERY_SECOND, id="a")
    s.add(clock.sleep, EVERY_SECOND, id="b", args=(3600,))
    ended = await s.run_once()
    assert all(end.outcome in (Outcome.CANCELLED, Outcome.SUCCEEDED) for end in ended.values())
    assert s.state is SchedulerState.STOPPED


async def test_it_has_a_deadline(clock):
    """What has not ended then is cancelled and is not in the answer; the deadline is this clock's."""
    s = Scheduler(clock=clock)
    s.add(clock.sleep, EVERY_SECOND, id="slow", args=(3600,))
    s.add(answer, EVERY_SECOND, id="quick", args=(1,))
    ended = {}
    async with anyio.create_task_group() as group:

        async def run():
            ended.update(await s.run_once(timeout="10s"))

        group.start_soon(run)
        await clock.travel(11)
        assert s.state is SchedulerState.STOPPED
        group.cancel_scope.cancel()
    assert set(ended) == {"quick"}


async def test_it_is_a_way_to_run_a_scheduler_and_one_runs_once(clock):
    """Neither after `run` nor before it."""
    s = Scheduler(clock=clock)
    await s.run_once()
    with pytest.raises((LifecycleError, AlreadyStopped)):
        await s.run_once()
    with pytest.raises(LifecycleError):
        await s.run()


async def test_a_paused_job_runs_too(clock):
    """Asked for everything, it leaves nothing out."""
    s = Scheduler(clock=clock)
    s.add(answer, EVERY_SECOND, id="a", args=(1,)).pause()
    assert set(await s.run_once()) == {"a"}


@pytest.mark.parametrize("what", ["is started by hand", "is paused", "is updated", "is paused with all"])
async def test_a_run_is_waited_for_whatever_becomes_of_its_job(what, clock):
    """What is missed or held meanwhile is not what was asked for."""
    s = Scheduler(clock=clock)

    async def change():
        await clock.sleep(1)
        match what:
            case "is started by hand":
                s.get("slow").run_now()
            case "is paused":
                s.get("slow").pause("enough")
            case "is updated":
                s.get("slow").update(timeout="1h")
            case _:
                s.pause()

    s.add(change, EVERY_SECOND, id="change")
    s.add(clock.sleep, EVERY_SECOND, id="slow", args=(5,))
    ended = await ended_within_ten_seconds(s, clock)
    assert {id: end.outcome for id, end in ended.items()} == {
        "change": Outcome.SUCCEEDED,
        "slow": Outcome.SUCCEEDED,
    }


@pytest.mark.parametrize("scope", ["its own", "of everything"])
async def test_another_attempt_that_a_pause_has_cancelled_is_not_waited_for(scope, clock):
    """Nothing of it is left that could end."""
    s = Scheduler(clock=clock)

    async def fail():
        raise ValueError

    async def pause():
        await clock.sleep(1)
        s.pause() if scope == "of everything" else s.get("failing").pause()

    s.add(fail, EVERY_SECOND, id="failing", retry=Retry.constant("1h"))
    s.add(pause, EVERY_SECOND, id="pause")
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(s.run_once)
            await clock.travel(10)
    assert s.state is SchedulerState.STOPPED


async def test_each_job_is_looked_at_for_itself(clock, monkeypatch):
    """Not all of them whenever something becomes of one: a thousand would take a thousand times a thousand looks."""
    looks = []
    may_end = run_once._may_end
    monkeypatch.setattr(run_once, "_may_end", lambda job: looks.append(job) or may_end(job))
    s = Scheduler(clock=clock)

    async def fail():
        await clock.sleep(1)
        raise ValueError

    for number in range(200):
        s.add(fail, EVERY_SECOND, id=f"{number}", retry=Retry.constant("1s", max_retries=0))
    assert len(await ended_within_ten_seconds(s, clock)) == 200
    assert len(looks) <= 600
