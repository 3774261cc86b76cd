"""The active object around the heap: any thread pushes, one loop fires, nobody is told a lie."""

import gc
import itertools
import math
import random
import re
import weakref
from contextlib import asynccontextmanager
from functools import partial
from threading import Event, get_ident

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kit import settle
from timerqueue import Alarm, LifecycleError, LifecycleState, TaskPool, TimerQueue
from timerqueue._queue import FAR
from timerqueue.testing import ManualClock

THREADS = 8


@asynccontextmanager
async def running(queue):
    """Run a queue during the block, then stop it."""
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        await settle()
        yield queue
        queue.stop()


async def in_threads(work):
    """Let eight threads do `work(number)` at the same time, and wait for them."""
    async with anyio.create_task_group() as group:
        for number in range(THREADS):
            group.start_soon(anyio.to_thread.run_sync, work, number)


def past_due(queue):
    """Return a time at which things are due at once, in the order of their pushes."""
    return queue.clock.monotonic() - 1


@pytest.fixture
def clock():
    """Time that passes when told to."""
    return ManualClock()


async def test_what_is_due_is_called_with_its_arguments(clock):
    """Once, and not before its time."""
    calls = []
    queue = TimerQueue(clock=clock)
    queue.push(clock.monotonic() + 1, lambda *args: calls.append(args), 1, "two")
    async with running(queue):
        assert calls == []
        await clock.travel(1)
        assert calls == [(1, "two")]
        await clock.travel(1_000)
    assert calls == [(1, "two")]


async def test_what_is_past_means_now():
    """Pushes before it runs and while it runs, in order of their due times, ties in order of their pushes."""
    calls = []
    queue = TimerQueue()
    now = queue.clock.monotonic()
    for delay in (0, -5, -1, -5):
        queue.push(now + delay, calls.append, delay)
    async with running(queue):
        await settle()
        assert calls == [-5, -5, -1, 0]
        queue.push(past_due(queue), calls.append, "now")
        await settle()
    assert calls == [-5, -5, -1, 0, "now"]


async def test_it_counts_what_waits(clock):
    """Cancelled and fired entries do not count."""
    queue = TimerQueue(clock=clock)
    timers = [queue.push(clock.monotonic() + delay, int) for delay in (1, 2, 3)]
    assert len(queue) == queue.statistics().waiting == 3
    timers[1].cancel()
    assert len(queue) == 2
    async with running(queue):
        await clock.travel(1)
        assert len(queue) == 1
        assert queue.statistics().fired == 1


async def test_cancel_says_whether_it_came_in_time(clock):
    """True: never fires. False: has fired, or was cancelled before."""
    calls = []
    queue = TimerQueue(clock=clock)
    early, late = (queue.push(clock.monotonic() + delay, calls.append, delay) for delay in (1, 2))
    async with running(queue):
        await clock.travel(1)
        assert [early.cancel(), late.cancel(), late.cancel()] == [False, True, False]
        await clock.travel(10)
    assert calls == [1]


async def test_reschedule_moves_either_way_and_says_whether_it_came_in_time(clock):
    """What has fired or was cancelled stays as it is."""
    calls = []
    queue = TimerQueue(clock=clock)
    start = clock.monotonic()
    earlier, later, fired, cancelled = (queue.push(start + 5, calls.append, name) for name in "elfc")
    cancelled.cancel()
    assert fired.reschedule(start)
    async with running(queue):
        assert calls == ["f"]
        assert earlier.reschedule(start + 2)
        assert later.reschedule(start + 9)
        assert not fired.reschedule(start + 9)
        assert not cancelled.reschedule(start + 9)
        await clock.travel(2)
        assert calls == ["f", "e"]
        await clock.travel(6)
        assert calls == ["f", "e"]
        await clock.travel(1)
    assert calls == ["f", "e", "l"]


async def test_an_earlier_push_moves_the_wait_and_a_later_one_costs_no_wake_up(clock):
    """One wait is armed for the earliest entry; only something earlier ends it."""
    queue = TimerQueue(clock=clock)
    start = clock.monotonic()
    async with running(queue):
        queue.push(start + 100, int)
        await settle()
        before = queue.statistics().wake_ups
        for delay in range(101, 200):
            queue.push(start + delay, int)
        await settle()
        assert queue.statistics().wake_ups == before
        queue.push(start + 50, int)
        await settle()
        assert queue.statistics().wake_ups == before + 1
        await clock.travel(50)
        assert queue.statistics().fired == 1


async def test_cancelling_costs_no_wake_up(clock):
    """The wait may end for nothing later, but not now."""
    queue = TimerQueue(clock=clock)
    async with running(queue):
        timers = [queue.push(clock.monotonic() + 100, int) for _ in range(10)]
        await settle()
        before = queue.statistics().wake_ups
        for timer in timers:
            timer.cancel()
        await settle()
        assert queue.statistics().wake_ups == before
        await clock.travel(200)
        assert queue.statistics().wake_ups <= before + 1


async def test_a_push_from_another_thread_ends_an_hour_of_waiting():
    """The loop lies in its selector and has to be woken."""
    fired = anyio.Event()
    queue = TimerQueue()
    queue.push(queue.clock.monotonic() + 3600, int)
    async with running(queue):
        await anyio.to_thread.run_sync(queue.push, past_due(queue), fired.set)
        await fired.wait()


async def test_a_reschedule_from_another_thread_ends_an_hour_of_waiting():
    """Moving an entry forward is an earlier push."""
    fired = anyio.Event()
    queue = TimerQueue()
    timer = queue.push(queue.clock.monotonic() + 3600, fired.set)
    async with running(queue):
        assert await anyio.to_thread.run_sync(timer.reschedule, past_due(queue))
        await fired.wait()


async def test_pushes_from_eight_threads_all_fire():
    """On the loop's thread, each once."""
    each = 500
    calls = []
    queue, loop_thread = TimerQueue(), get_ident()

    def call(what):
        assert get_ident() == loop_thread
        calls.append(what)

    def push(number):
        assert get_ident() != loop_thread
        for index in range(each):
            queue.push(queue.clock.monotonic() + index % 7 / 1_000, call, (number, index))

    async with running(queue):
        await in_threads(push)
        done = anyio.Event()
        queue.push(queue.clock.monotonic() + 0.01, done.set)
        await done.wait()
    assert sorted(calls) == [(number, index) for number in range(THREADS) for index in range(each)]
    assert len(queue) == 0


async def test_threads_that_cancel_and_move_are_never_told_a_lie():
    """Fired or cancelled: one of the two, once, as each answer said."""
    fired, cancelled = [], []
    queue = TimerQueue()
    start = queue.clock.monotonic()
    timers = [queue.push(start + index % 40 / 1_000, fired.append, index) for index in range(4_000)]

    def meddle(number):
        chance = random.Random(number)
        for index in chance.sample(range(len(timers)), 2_500):
            if chance.random() < 0.5:
                timers[index].reschedule(queue.clock.monotonic() + chance.random() / 100)
            elif timers[index].cancel():
                cancelled.append(index)

    async with running(queue):
        await in_threads(meddle)
        done = anyio.Event()
        queue.push(queue.clock.monotonic() + 0.05, done.set)
        await done.wait()
    assert sorted(fired + cancelled) == list(range(len(timers)))


DELAYS = [0.0001, 0.0004, 0.0012, 0.0019, 0.0023, 0.0031, 0.0036, 0.0058, 0.0099]


async def early_calls():
    """Let some time pass in real steps; return who was called early, and how often the loop woke up."""
    early = []
    queue = TimerQueue()

    def look(due):
        now = queue.clock.monotonic()
        if now < due:
            early.append((due, now))

    for delay in DELAYS:
        due = queue.clock.monotonic() + delay
        queue.push(due, look, due)
    queue.push(queue.clock.monotonic() + 0.012, queue.stop)
    await queue.run()
    return early, queue.statistics().wake_ups


async def test_real_time_is_never_early():
    """Whatever the clock of the event loop thinks of it."""
    early, wake_ups = await early_calls()
    assert early == []
    assert wake_ups <= 5 * len(DELAYS)


def test_real_time_is_never_early_on_uvloop_and_it_does_not_spin():
    """Its timers fire up to a millisecond early, and looking again and again until the rest is over costs a core."""
    pytest.importorskip("uvloop")
    early, wake_ups = anyio.run(early_calls, backend_options={"use_uvloop": True})
    assert early == []
    assert wake_ups <= 5 * len(DELAYS)


async def test_a_burst_is_fired_in_pieces():
    """Others on the loop have their turn while ten thousand entries are due."""
    turns = itertools.count()
    queue = TimerQueue()
    for _ in range(10_000):
        queue.push(past_due(queue), int)

    async def count_turns():
        while queue.statistics().fired < 10_000:
            next(turns)
            await checkpoint()
        queue.stop()

    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        group.start_soon(count_turns)
    assert next(turns) >= 10


async def test_what_raises_is_logged_and_the_others_go_on(caplog):
    """One bad callable costs nobody else a call."""
    calls = []
    queue = TimerQueue()
    for what in (1, 0, 2):
        queue.push(past_due(queue), lambda what: calls.append(1 / what), what)
    async with running(queue):
        await settle()
        assert queue.state is LifecycleState.RUNNING
    assert calls == [1, 0.5]
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_keyboard_interrupt_goes_through(backend):
    """Whoever presses Ctrl-C means the program, not the callable that happened to run."""

    def interrupt():
        raise KeyboardInterrupt

    queue = TimerQueue()
    queue.push(past_due(queue), interrupt)
    with pytest.raises(KeyboardInterrupt):
        anyio.run(queue.run, backend=backend)
    assert queue.state is LifecycleState.STOPPED


async def test_an_entry_pushed_by_an_entry_fires_too():
    """Also when it is due at once, and also when it is due before what is being fired."""
    calls = []
    queue = TimerQueue()

    def again(left):
        calls.append(left)
        if left:
            queue.push(past_due(queue) - left, again, left - 1)

    async with running(queue):
        queue.push(past_due(queue), again, 5)
        await settle()
    assert calls == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("verb", ["cancel", "reschedule"])
async def test_an_entry_that_meddles_with_one_of_its_own_batch_is_told_the_truth(verb):
    """True: it did not fire (again) then. False: it fires with the rest of the batch. Never both, never neither."""
    calls, answers = [], []
    queue = TimerQueue()

    def meddle():
        later = queue.clock.monotonic() + 3600
        answers.append(victim.cancel() if verb == "cancel" else victim.reschedule(later))

    queue.push(past_due(queue), meddle)
    victim = queue.push(past_due(queue), calls.append, "victim")
    async with running(queue):
        await settle()
    assert (answers, calls) in [([True], []), ([False], ["victim"])]


async def test_what_is_due_until_some_moment_can_be_fired_here_and_now():
    """With what that pushes; the rest waits on, and no loop need run."""
    queue, said = TimerQueue(clock=ManualClock()), []

    def says_and_pushes(word):
        said.append(word)
        queue.push(2, said.append, "pushed meanwhile")
        queue.push(4, said.append, "pushed for later")

    queue.push(3, said.append, "later")
    queue.push(1, says_and_pushes, "first")
    queue.push(2, said.append, "second")
    queue.fire_until(2)
    assert said == ["first", "second", "pushed meanwhile"]
    assert (len(queue), queue.statistics().fired) == (2, 3)
    queue.fire_until(2)
    assert len(said) == 3


async def test_nothing_fires_after_an_entry_has_stopped_the_queue():
    """Not even what was due together with it."""
    calls = []
    queue = TimerQueue()
    queue.push(past_due(queue), calls.append, "before")
    queue.push(past_due(queue), queue.stop)
    queue.push(past_due(queue), calls.append, "after")
    await queue.run()
    assert calls == ["before"]


async def test_it_can_be_cancelled_while_something_is_always_due():
    """A callable that pushes itself again at once does not make the loop its own."""
    calls = itertools.count()
    queue = TimerQueue()

    def again():
        if next(calls) < 20_000:
            queue.push(past_due(queue), again)
        else:
            queue.stop()

    again()
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        await settle()
        group.cancel_scope.cancel()
    assert next(calls) < 20_000
    assert queue.state is LifecycleState.STOPPED


async def test_stop_drops_what_waits_and_refuses_what_comes(clock):
    """Twice is harmless; a push afterwards is an error and not silence."""
    calls = []
    queue = TimerQueue(clock=clock)
    waiting = queue.push(clock.monotonic() + 1, calls.append, "late")
    async with running(queue):
        queue.stop()
        queue.stop()
    clock.advance(10)
    await settle()
    assert calls == []
    with pytest.raises(LifecycleError, match="cannot push: this TimerQueue has stopped"):
        queue.push(clock.monotonic(), int)
    assert not waiting.is_waiting or waiting.cancel()


@pytest.mark.parametrize("has_begun", [False, True])
async def test_after_stop_nothing_waits_and_nothing_is_kept(has_begun, clock):
    """What was dropped still counted as waiting, and the queue held its callables."""

    class Job:
        def run(self):
            raise AssertionError

    queue, job = TimerQueue(clock=clock), Job()
    watched = weakref.ref(job)
    queue.push(clock.monotonic() + 1, job.run)
    if has_begun:
        async with running(queue):
            assert len(queue) == queue.statistics().waiting == 1
    queue.stop()
    del job
    assert len(queue) == queue.statistics().waiting == 0
    assert watched() is None


def test_a_timer_that_stop_has_dropped_can_be_cancelled_once(clock):
    """True means that it never fires. One that fired or was cancelled before stays so."""
    queue = TimerQueue(clock=clock)
    dropped, cancelled, fired = (queue.push(clock.monotonic() + due, int) for due in (2, 3, 1))
    cancelled.cancel()
    queue.fire_until(clock.monotonic() + 1)
    queue.stop()
    assert [each.cancel() for each in (dropped, cancelled, fired)] == [True, False, False]
    assert not dropped.cancel()
    assert not dropped.is_waiting


async def test_a_timer_is_not_moved_to_a_time_that_will_never_come(clock):
    """After the end a reschedule that said yes would be a push that was lost."""
    queue = TimerQueue(clock=clock)
    timer = queue.push(clock.monotonic() + 1, int)
    queue.stop()
    try:
        moved = timer.reschedule(clock.monotonic() + 2)
    except LifecycleError:
        moved = False
    assert not moved


async def test_it_runs_once():
    """Neither beside itself nor a second time."""
    queue = TimerQueue()
    async with running(queue):
        with pytest.raises(LifecycleError, match="running"):
            await queue.run()
        await settle()
        assert queue.state is LifecycleState.RUNNING
    with pytest.raises(LifecycleError, match="stopped"):
        await queue.run()


async def test_stopped_before_it_runs_it_never_runs():
    """There is no way back."""
    queue = TimerQueue()
    queue.stop()
    with pytest.raises(LifecycleError):
        await queue.run()


async def test_cancelling_its_task_stops_it():
    """Whoever pushes afterwards hears of it."""
    queue = TimerQueue()
    with anyio.move_on_after(0):
        await queue.run()
    with pytest.raises(LifecycleError):
        queue.push(0, int)


async def test_stop_from_another_thread_ends_an_hour_of_waiting():
    """And `run` returns."""
    queue = TimerQueue()
    queue.push(queue.clock.monotonic() + 3600, int)
    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        await settle()
        await anyio.to_thread.run_sync(queue.stop)


@pytest.mark.parametrize("attempt", range(10))
async def test_no_push_is_accepted_after_stop_has_returned(attempt):
    """Heartbeat lost a push in a race with Stop without a word."""
    queue = TimerQueue()
    stopped = Event()
    pushes = itertools.count()

    def push_until_refused(number):
        while True:
            is_late = stopped.is_set()
            try:
                queue.push(queue.clock.monotonic() + 3600, int)
            except LifecycleError:
                return
            assert not is_late
            next(pushes)

    def stop():
        while next(pushes) < 100:
            pass
        queue.stop()
        stopped.set()

    async with anyio.create_task_group() as group:
        group.start_soon(queue.run)
        group.start_soon(anyio.to_thread.run_sync, stop)
        await in_threads(push_until_refused)


@pytest.mark.parametrize("due", [math.nan, math.inf, -math.inf])
async def test_a_due_time_is_a_finite_number(due, clock):
    """For a push, a move and an alarm alike; what was moved stays where it was."""
    calls = []
    queue = TimerQueue(clock=clock)
    timer = queue.push(clock.monotonic() + 1, calls.append, "moved")
    queue.push(clock.monotonic() + 2, calls.append, "other")
    with pytest.raises(ValueError, match="finite number of monotonic seconds"):
        queue.push(due, int)
    with pytest.raises(ValueError, match="finite number of monotonic seconds"):
        timer.reschedule(due)
    alarm = Alarm()
    with pytest.raises(ValueError, match="finite number of monotonic seconds"):
        queue.arm(alarm, due)
    with pytest.raises(ValueError, match="finite number of monotonic seconds"):
        queue.arm_all([alarm, Alarm()], [due, clock.monotonic()])
    assert not alarm.is_waiting
    async with running(queue):
        await clock.travel(3)
    assert calls == ["moved", "other"]


@pytest.mark.parametrize("others", [[0.0] * 99, [5.0], [FAR, -FAR], [-1e16]])
@pytest.mark.parametrize("due", [1e16, -1e16, math.nextafter(FAR, math.inf), math.nan, math.inf])
def test_alarms_that_are_armed_together_are_refused_for_one_that_is_too_far(due, others, clock):
    """As by `push`. Only the mean of their due times was looked at."""
    queue, alarms = TimerQueue(clock=clock), [Alarm() for _ in range(len(others) + 1)]
    with pytest.raises(ValueError, match=f"monotonic seconds, not ({re.escape(repr(due))}|-1e.16)"):
        queue.arm_all(alarms, [*others, due])
    assert not any(each.is_waiting for each in alarms)


def test_alarms_that_are_armed_together_may_all_be_far(clock):
    """However far they are together."""
    queue = TimerQueue(clock=clock)
    queue.arm_all([Alarm() for _ in range(100)], [FAR, -FAR] * 50)
    assert len(queue) == 100


async def coroutine_function():
    """Stand for a user's `async def`."""


class User:
    """Stands for a user's object."""

    async def method(self):
        pass

    __call__ = method


@pytest.mark.parametrize(
    "func",
    [coroutine_function, partial(coroutine_function), User().method, User(), partial(User()), partial(partial(User()))],
)
async def test_without_a_pool_an_async_def_is_refused(func):
    """Its coroutine would never be awaited; the error says what to do."""
    with pytest.raises(TypeError, match=r"TimerQueue\(pool=TaskPool"):
        TimerQueue().push(0, func)


def generator_function():
    """Stand for a mistake of a user's."""
    yield


@pytest.mark.parametrize("func", [lambda: coroutine_function(), generator_function])  # noqa: PLW0108 - it is the point
async def test_a_call_that_has_only_promised_something_is_logged_as_an_error(clock, caplog, func):
    """Nobody would run what it returned: a coroutine is closed. The queue goes on."""
    calls = []
    queue = TimerQueue(clock=clock)
    queue.push(clock.monotonic() + 1, func)
    queue.push(clock.monotonic() + 2, calls.append, "next")
    async with running(queue):
        await clock.travel(2)
    assert calls == ["next"]
    (record,) = caplog.records
    assert "TimerQueue(pool=TaskPool" in str(record.exc_info[1])


async def test_with_a_pool_what_is_due_runs_there(clock):
    """Under its capacity, and beside each other."""
    started, ended, go = [], [], anyio.Event()

    async def task(name):
        started.append(name)
        await go.wait()
        ended.append(name)

    async with TaskPool(2, clock=clock) as pool:
        queue = TimerQueue(pool, clock)
        for name in "abc":
            queue.push(clock.monotonic() + 1, task, name)
        async with running(queue):
            await clock.travel(1)
            assert (started, pool.active, pool.waiting) == (["a", "b"], 2, 1)
            go.set()
            await settle()
    assert sorted(ended) == ["a", "b", "c"]


async def test_its_statistics_tell_the_worst_lateness(clock):
    """The longest time from due to fired."""
    queue = TimerQueue(clock=clock)
    queue.push(clock.monotonic() + 1, int)
    async with running(queue):
        assert queue.statistics().lateness_max == 0
        clock.advance(3.5)
        await settle()
        assert queue.statistics().lateness_max == 2.5


async def test_one_who_builds_on_it_gets_whole_batches(clock):
    """`fire` is called at every turn with what is due, in order, and the time of the turn."""
    turns = []
    queue = TimerQueue(clock=clock, fire=lambda batch, now: turns.append((list(batch), now)))
    start = clock.monotonic()
    alarms = [Alarm() for _ in range(4)]
    for alarm, delay in zip(alarms, (2, 1, 1, 5), strict=True):
        queue.arm(alarm, start + delay)
    async with running(queue):
        await clock.travel(1)
        await clock.travel(1)
        assert queue.disarm(alarms[3])
        assert not queue.disarm(alarms[3])
        assert not queue.rearm(alarms[3], start + 3)
        queue.arm(alarms[3], start + 3)
        await clock.travel(1)
    assert [turn for turn in turns if turn[0]] == [
        ([alarms[1], alarms[2]], start + 1),
        ([alarms[0]], start + 2),
        ([alarms[3]], start + 3),
    ]


async def test_a_fired_callable_is_let_go(clock):
    """Neither the queue nor its wait keeps what it has called."""
    user = User()
    watched = weakref.ref(user)
    queue = TimerQueue(clock=clock)
    queue.push(clock.monotonic() + 1, lambda user: None, user)
    queue.push(clock.monotonic() + 100, int)
    del user
    async with running(queue):
        await clock.travel(2)
        gc.collect()
        assert watched() is None


async def test_50_000_cancelled_timers_are_let_go():
    """Long before they would have been due."""
    queue = TimerQueue()
    users = [User() for _ in range(50_000)]
    watched = [weakref.ref(user) for user in users]
    timers = [queue.push(queue.clock.monotonic() + 3600, lambda user: None, user) for user in users]
    assert all(timer.cancel() for timer in timers)
    assert len(queue) == 0
    del users, timers
    gc.collect()
    assert sum(ref() is not None for ref in watched) <= 2_000


class PacedClock(ManualClock):
    """A clock on which it is not worth while to look at the timers more often than every second."""

    def make_wake(self):
        wake = super().make_wake()
        wake.pace = 1.0
        return wake


@pytest.fixture
def paced():
    """A queue that looks at its timers once a second."""
    return TimerQueue(clock=PacedClock())


async def test_what_becomes_due_while_it_is_not_worth_while_to_look_fires_together(paced):
    """A busy loop comes back for many timers at a time, and never early."""
    calls = []
    start = paced.clock.monotonic()
    for tenth in (0, 2, 4, 6, 13):
        paced.push(start + tenth / 10, calls.append, tenth)
    async with running(paced):
        assert calls == [0]
        await paced.clock.travel(0.9)
        assert calls == [0]
        await paced.clock.travel(0.1)
        assert calls == [0, 2, 4, 6]
        await paced.clock.travel(1)
        assert calls == [0, 2, 4, 6, 13]


async def test_after_a_rest_a_timer_fires_when_it_is_due(paced):
    """The pace is between two looks: who has not looked for long does not wait."""
    calls = []
    async with running(paced):
        await paced.clock.travel(5)
        paced.push(paced.clock.monotonic() + 0.5, calls.append, 1)
        await settle()
        await paced.clock.travel(0.5)
        assert calls == [1]


async def test_what_somebody_wants_at_once_does_not_wait_for_the_pace(paced):
    """Neither from outside, nor from a timer that fires."""
    calls = []

    def at_once():
        calls.append("first")
        paced.push(past_due(paced), calls.append, "second")

    async with running(paced):
        paced.push(past_due(paced), at_once)
        await settle()
        assert calls == ["first", "second"]
        paced.push(past_due(paced), calls.append, "third")
        await settle()
        assert calls == ["first", "second", "third"]


async def test_alarms_that_are_armed_together_fire_like_those_that_are_armed_alone(clock):
    """In the order of their due times, and the earliest ends the wait."""
    calls = []

    class Note(Alarm):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def fire(self):
            calls.append(self.name)

    queue = TimerQueue(clock=clock)
    start = clock.monotonic()
    async with running(queue):
        queue.arm(Note("late"), start + 9)
        await settle()
        queue.arm_all([Note("b"), Note("a"), Note("c")], [start + 2, start + 1, start + 2])
        await settle()
        await clock.travel(2)
        assert calls == ["a", "b", "c"]
        await clock.travel(7)
        assert calls == ["a", "b", "c", "late"]


async def test_alarms_that_are_armed_together_after_the_end_are_dropped(clock):
    """Their owner has heard of the end already: it is not its mistake."""
    queue = TimerQueue(clock=clock)
    queue.stop()
    queue.arm_all([queue_alarm := Alarm()], [1.0])
    assert len(queue) == 0
    assert not queue_alarm.is_waiting
