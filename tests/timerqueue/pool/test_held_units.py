"""Who holds the units of a limit, and who is told that work waits."""

import anyio
from anyio.lowlevel import checkpoint

from timerqueue import TaskPool


async def test_holders_are_named_with_the_longest_first():
    """Until they give their units back."""
    goes_on = anyio.Event()
    async with TaskPool(10, {"db": 3}) as pool:
        works = [pool.start_soon(goes_on.wait, needs={"db": units}) for units in (2, 1)]
        plain = pool.start_soon(goes_on.wait)
        held = pool.held("db", 5)
        assert (held.size, held.used, held.holders, held.count) == (3, 3, tuple(works), 2)
        assert pool.held("db", 1).holders == (works[0],)
        assert plain not in held.holders
        goes_on.set()
        await pool.drained()
        assert (pool.held("db", 5).used, pool.held("db", 5).holders) == (0, ())


async def test_work_that_was_killed_or_cancelled_holds_nothing():
    """Its units are free."""
    async with TaskPool(10, {"host:*": 1}) as pool:
        first, second = (pool.start_soon(anyio.sleep_forever, needs="host:a") for _ in range(2))
        await checkpoint()
        pool.kill(first)
        assert pool.held("host:a", 5).holders == (second,)
        pool.cancel(second)
        await pool.drained()
        assert pool.held("host:a", 5).holders == ()


async def test_only_work_without_room_is_told_of():
    """As it begins to wait, and as the end of another makes room for it."""
    told = []
    async with TaskPool(2, {"db": 1}) as pool:
        pool.tell_waits(lambda work, released: told.append((work, released)))
        goes_on = anyio.Event()
        first = pool.start_soon(goes_on.wait, needs="db")
        for_db = pool.start_soon(goes_on.wait, needs="db")
        another = pool.start_soon(goes_on.wait, needs="db")
        pool.start_soon(goes_on.wait)
        for_a_place = pool.start_soon(goes_on.wait)
        assert told == [(for_db, None), (another, None), (for_a_place, None)]
        assert (pool.waits_for(for_db), pool.ahead_of(another)) == ("db", 1)
        goes_on.set()
        await pool.drained()
        assert {(for_db, first), (another, for_db)} <= set(told)
