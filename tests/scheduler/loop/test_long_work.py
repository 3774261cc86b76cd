"""What the loop does for many jobs is done in pieces, between which it is the others' turn."""

from math import ceil

from anyio.lowlevel import checkpoint

from scheduler._loop.long_work import MAX_PAUSE_S, PIECE_JOBS, PIECE_S, LongWork
from timerqueue import SystemClock


class Clock(SystemClock):
    """A clock that moves when somebody works or sleeps, and notes how long it is slept."""

    __slots__ = ("monotonic", "now", "slept")

    def __init__(self):
        super().__init__()
        self.now, self.slept = 1_000.0, []
        self.monotonic = lambda: self.now

    async def sleep(self, seconds):
        self.slept.append(round(seconds, 6))
        self.now += seconds
        await checkpoint()


async def work_through(clock, jobs, each, **how):
    """Do so many jobs that take so many seconds each: how many there are in each piece."""
    work, pieces = LongWork(clock), [0]
    for _ in range(jobs):
        if work.is_long():
            await work.give_way(**how)
            pieces.append(0)
        pieces[-1] += 1
        clock.now += each
    return pieces


async def test_a_piece_takes_some_milliseconds_and_then_it_sleeps_as_long():
    """Half of the loop is left to the others, however much there is to be done, and whatever a job takes."""
    clock = Clock()
    pieces = await work_through(clock, 7_000, 0.00011)
    jobs = ceil(PIECE_S / 0.00011)
    assert set(pieces[:-1]) == {jobs}
    assert set(clock.slept) == {round(jobs * 0.00011, 6)}


async def test_what_is_late_already_leaves_one_turn_to_the_others():
    """It would come later still."""
    clock = Clock()
    pieces = await work_through(clock, 201, 0.002, hurries=True)
    assert set(pieces) == {3}
    assert clock.slept == []


async def test_a_piece_that_did_not_get_the_processor_is_not_slept_off():
    """A machine that stands still for a second is none the better for a second of sleep."""
    clock = Clock()
    await work_through(clock, 3, 1.0)
    assert clock.slept == [MAX_PAUSE_S] * 2


async def test_a_clock_that_stands_still_ends_pieces_too(clock):
    """Nobody sets it while the loop is busy, and a sleep would not end."""
    assert await work_through(StandsStill(clock), 3 * PIECE_JOBS, 0.0) == [PIECE_JOBS, PIECE_JOBS, PIECE_JOBS]


class StandsStill:
    """A clock that nobody moves, with a `now` that nobody reads."""

    now = 0.0

    def __init__(self, clock):
        self.monotonic, self.sleep = clock.monotonic, clock.sleep
