"""Ticks wait, and then the loop itself is late: what is due and has no record are the newest ticks, without holes.

That is how the next process knows them after a kill: one instant in the state says where they begin.
"""

import pytest

from kit import check_every_slot
from schedule import Every, Missed
from scheduler import Overlap
from timerqueue.testing import START

SLOT = 10
WAITING = [
    {"overlap": Overlap.ALLOW, "max_running": 4},
    {"overlap": Overlap.QUEUE},
    {"overlap": Overlap.SKIP},
    {"overlap": Overlap.REPLACE},
]
MISSED = [
    {"missed": Missed.LATEST},
    {"missed": Missed.SKIP, "grace": "1s"},
    {"missed": Missed.ALL, "catch_up": 2},
]
REFUSED = (Overlap.REPLACE, Missed.ALL)
OPTIONS = [one | other for one in WAITING for other in MISSED if (one["overlap"], other["missed"]) != REFUSED]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: f"{each['overlap'].name}-{each['missed'].name}")
@pytest.mark.parametrize("waiting", [0, 1, 2, 3])
@pytest.mark.parametrize("held_up", [12, 25, 65])
async def test_each_slot_has_one_record_after_a_kill(processes, options, waiting, held_up):
    """Though ticks waited for room or for the end of a run when the loop was held up, and the process died then."""
    async with processes.one(10_000, dies=True, limit=1) as s:
        s.add("work", Every(SLOT, anchor=START), id="other", start="now")
        await processes.clock.travel(1)
        s.add("work", Every(SLOT, anchor=START), id="job", **options)
        await processes.clock.travel(waiting * SLOT)
        processes.clock.advance(held_up)
        await processes.clock.travel(0)
        await s.flush()
    async with processes.one(0.1) as s:
        await processes.clock.travel(50)
        await s.flush()
    check_every_slot(processes.store.history("job", limit=1_000), SLOT * 1_000_000)
