"""What a store cannot hold is lost alone: nobody else waits for it, and the store does not count as down."""

import pytest

from kit import until
from scheduler import Scheduler, StoreDown, StoreError


async def test_a_state_that_does_not_fit_stops_no_other_job(place, events, caplog):
    """A number beyond 64 bits was taken for a store that is down, for good: nothing of any job was stored any more."""
    s = Scheduler(store=place.store(), blocked_after=None, poll="1h")
    s.listen(events)
    s.register("work", lambda: None, inline=True)
    async with s:
        odd, good = (s.add("work", "0 0 1 1 *", id=id) for id in ("odd", "good"))
        await s.flush()
        odd.counts().runs = 2**63 - 1
        odd.run_now()
        good.run_now()
        with pytest.raises(StoreError, match="some of it could not be stored"):
            await s.flush()
        await until(lambda: good.statistics().successes == 1)
        good.run_now()
        await until(lambda: good.statistics().successes == 2)
        await s.flush()
        assert s.statistics().store.trouble is None
        assert not events.of(StoreDown)
        assert len(await s.history("good")) == 2
    assert "what should be stored of ['odd'] is lost" in caplog.text
    rows, _ = place.content()
    assert rows["good"][1].runs == 2
