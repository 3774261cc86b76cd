"""Work that has room and may not begin yet: it keeps its units until somebody lets it begin, or cancels it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from timerqueue import HELD, Held, TaskPool, Work

pytestmark = pytest.mark.anyio


class Patient(Work):
    """Is held when it is first opened, and notes what becomes of it."""

    def __init__(self, log: list[str], needs: tuple[tuple[str, int], ...] = ()) -> None:
        super().__init__(needs)
        self.log = log
        self.times_opened = 0

    def open(self, now: float) -> Coroutine[Any, Any, Any] | Held | None:
        self.times_opened += 1
        self.log.append("opened")
        return HELD if self.times_opened == 1 else self.run()

    async def run(self) -> None:
        self.log.append("ran")

    def close(self, value: Any, error: BaseException | None, now: float) -> None:
        self.log.append("closed" if error is None else repr(error))

    def drop(self) -> None:
        self.log.append("dropped")


async def a_few_turns() -> None:
    for _ in range(10):
        await checkpoint()


async def test_held_work_keeps_its_unit_and_runs_when_it_is_let_begin() -> None:
    """Opened twice, run once."""
    log: list[str] = []
    async with TaskPool(1) as pool:
        work = Patient(log)
        pool.submit(work)
        await a_few_turns()
        assert (log, pool.active) == (["opened"], 1)
        pool.let_begin([work])
        await a_few_turns()
        assert (log, pool.active) == (["opened", "opened", "ran", "closed"], 0)


async def test_what_needs_the_room_of_held_work_waits() -> None:
    """Room that is held is room that is taken."""
    log: list[str] = []
    async with TaskPool(5, {"door": 1}) as pool:
        first, second = Patient(log, (("door", 1),)), Patient(log, (("door", 1),))
        pool.submit(first, second)
        await a_few_turns()
        assert second.times_opened == 0
        pool.let_begin([first])
        await a_few_turns()
        assert (second.times_opened, pool.active) == (1, 1)
        pool.cancel(second)


async def test_held_work_that_is_cancelled_is_dropped_and_gives_its_unit_to_the_next() -> None:
    """And what is let begin afterwards is only the other."""
    log: list[str] = []
    async with TaskPool(1) as pool:
        first, second = Patient(log), Patient(log)
        pool.submit(first, second)
        await a_few_turns()
        pool.cancel(first)
        await a_few_turns()
        assert log == ["opened", "dropped", "opened"]
        pool.let_begin([first, second])
        await a_few_turns()
        assert log[3:] == ["opened", "ran", "closed"]


async def test_killing_held_work_drops_it() -> None:
    """There is no code of it that could resist."""
    log: list[str] = []
    async with TaskPool(1) as pool:
        work = Patient(log)
        pool.submit(work)
        await a_few_turns()
        pool.kill(work)
        await a_few_turns()
        assert (log, pool.active) == (["opened", "dropped"], 0)


async def test_held_work_is_dropped_when_the_pool_is_left_by_an_error() -> None:
    """It is told, like everything that waits."""
    log: list[str] = []

    async def leave() -> None:
        async with TaskPool(1) as pool:
            pool.submit(Patient(log))
            await a_few_turns()
            raise ZeroDivisionError

    with pytest.raises(ExceptionGroup):
        await leave()
    assert log == ["opened", "dropped"]


async def test_letting_begin_what_is_not_held_does_nothing() -> None:
    """It has never been submitted."""
    log: list[str] = []
    async with TaskPool(1) as pool:
        work = Patient(log)
        pool.let_begin([work])
        await a_few_turns()
        assert log == []


async def test_what_steps_aside_gives_its_unit_away_and_comes_back_by_submit() -> None:
    """It is opened again when there is room again."""
    log: list[str] = []
    async with TaskPool(1) as pool:
        first, second = Patient(log), Patient(log)
        pool.submit(first, second)
        await a_few_turns()
        assert pool.step_aside([first]) == [first]
        await a_few_turns()
        assert (second.times_opened, pool.active) == (1, 1)
        pool.submit(first)
        pool.let_begin([first, second])
        await a_few_turns()
        assert log == ["opened", "opened", "opened", "ran", "closed", "opened", "ran", "closed"]
