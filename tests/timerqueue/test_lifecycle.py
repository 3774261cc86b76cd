"""Each step of a life is taken once, by exactly one caller."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from timerqueue import Lifecycle, LifecycleError, LifecycleState, TimerQueueError

THREADS = 8


def race(call):
    """Let eight threads call at the same moment, and return what each got: its answer or its error."""
    barrier = Barrier(THREADS)

    def one(_):
        barrier.wait()
        try:
            return call()
        except LifecycleError as error:
            return error

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(one, range(THREADS)))


def test_it_goes_forward_only():
    """Pre-running, running, stopped, and no way back."""
    lifecycle = Lifecycle("queue")
    states = [lifecycle.state]
    lifecycle.start()
    states.append(lifecycle.state)
    assert lifecycle.stop()
    states.append(lifecycle.state)
    assert states == [LifecycleState.PRE_RUNNING, LifecycleState.RUNNING, LifecycleState.STOPPED]


def test_it_starts_once():
    """The second start is an error that says what to do."""
    lifecycle = Lifecycle("queue")
    lifecycle.start()
    with pytest.raises(
        LifecycleError, match="this queue is running and cannot be started: it runs once, so make a new one"
    ):
        lifecycle.start()


def test_it_stops_once():
    """Every later stop is harmless and says that it did nothing."""
    lifecycle = Lifecycle("queue")
    lifecycle.start()
    assert [lifecycle.stop(), lifecycle.stop(), lifecycle.stop()] == [True, False, False]


class Interrupted:
    """A lock after whose first release somebody else has their turn."""

    def __init__(self, others_turn):
        self.turns = iter([others_turn])

    def __enter__(self):
        pass

    def __exit__(self, *_):
        for turn in self.turns:
            turn()


def test_a_start_in_the_middle_of_a_stop_does_not_undo_it():
    """Whoever comes first, it has stopped when both are done."""
    lifecycle = Lifecycle("queue")
    outcomes = []

    def start():
        try:
            outcomes.append(lifecycle.start())
        except LifecycleError as error:
            outcomes.append(error)

    lifecycle._lock = Interrupted(start)
    outcomes.append(lifecycle.stop())
    assert lifecycle.state is LifecycleState.STOPPED
    assert isinstance(outcomes[0], LifecycleError)
    assert outcomes[1] is True


def test_it_may_be_stopped_before_it_starts():
    """And then never starts."""
    lifecycle = Lifecycle("queue")
    assert lifecycle.stop()
    with pytest.raises(LifecycleError, match="stopped"):
        lifecycle.start()


def test_only_what_has_stopped_refuses():
    """Before it runs and while it runs things may be added."""
    lifecycle = Lifecycle("queue")
    lifecycle.refuse_if_stopped("push")
    lifecycle.start()
    lifecycle.refuse_if_stopped("push")
    lifecycle.stop()
    with pytest.raises(LifecycleError, match="cannot push: this queue has stopped"):
        lifecycle.refuse_if_stopped("push")


@pytest.mark.parametrize("attempt", range(20))
def test_one_of_eight_threads_starts_it(attempt):
    """Compare and set, not look and then leap."""
    answers = race(Lifecycle("queue").start)
    assert answers.count(None) == 1
    assert sum(isinstance(answer, LifecycleError) for answer in answers) == THREADS - 1


@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("attempt", range(10))
def test_one_of_eight_threads_stops_it(attempt, is_running):
    """Whoever won has something to clean up; two winners would do it twice."""
    lifecycle = Lifecycle("queue")
    if is_running:
        lifecycle.start()
    answers = race(lifecycle.stop)
    assert sorted(answers) == [False] * (THREADS - 1) + [True]


def test_its_error_can_be_caught_by_its_base_and_as_a_runtime_error():
    """One base for the package, and the built-in that people expect."""
    assert issubclass(LifecycleError, TimerQueueError)
    assert issubclass(LifecycleError, RuntimeError)
