"""Work that leaves a cancel scope open harms its own worker, and nobody else."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kit import settle
from timerqueue import TaskPool


@pytest.mark.parametrize("make_scope", [anyio.CancelScope, lambda: anyio.move_on_after(3600)])
async def test_work_that_leaves_a_cancel_scope_open_hurts_no_other(make_scope):
    """The worker that it ran in is replaced, and the pool ends in good order."""
    open_scopes, good = [], []

    async def leak():
        await checkpoint()
        scope = make_scope()
        scope.__enter__()
        open_scopes.append(scope)

    async def decent():
        await checkpoint()
        good.append(anyio.current_effective_deadline())

    async with TaskPool(3) as pool:
        for _ in range(5):
            pool.start_soon(leak)
            for _ in range(4):
                pool.start_soon(decent)
        await settle(50)
        assert (pool.active, pool.waiting) == (0, 0)
    assert len(open_scopes) == 5
    assert len(good) == 20


async def test_a_deadline_left_behind_is_not_that_of_the_next_work():
    """With room for one, the next work stands where the leaking one stood."""
    kept, outer, seen = [], anyio.current_effective_deadline(), []

    async def leak():
        await checkpoint()
        scope = anyio.move_on_after(3600)
        scope.__enter__()
        kept.append(scope)

    async def look():
        seen.append(anyio.current_effective_deadline())

    async with TaskPool(1) as pool:
        for _ in range(3):
            pool.start_soon(leak)
            pool.start_soon(look)
    assert len(kept) == 3
    assert seen == [outer] * 3
