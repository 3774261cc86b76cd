"""The first seconds: what fell due while the agent was away, or was starting, does not start all at once."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from scheduler import Scheduler, SchedulerStarted
from scheduler.stores.memory import MemoryStore
from uptime_agent.assembly import checking_of
from uptime_agent.checks import Holdups, Resolver
from uptime_agent.config import Network
from uptime_agent.config.config import parse_config
from uptime_agent.targets import CheckDeps
from uptime_agent.text import Redactor

MONITORS = 2_000
LIMITS = {"tcp": 200, "host:*": 10}


def targets(interval):
    checks = "\n".join(f'[[check]]\nname = "site-{n:04}"\nurl = "tcp://127.0.0.1:1"' for n in range(MONITORS))
    return parse_config(f'store = "memory"\n[defaults]\ninterval = "{interval}s"\n{checks}', "a.toml", {}).targets


async def starts_of(clock, wanted, store, *, takes, then=lambda _scheduler: None):
    """Begin as a new process that `takes` so long to begin: seconds from then on to the first start of each target.

    `then`: what happens before it ends.
    """
    scheduler = Scheduler(500, LIMITS, clock=clock, store=store)
    ways = CheckDeps(Resolver({}), clock, Redactor(), Holdups(clock))
    checking = checking_of(scheduler, ways, Network())
    checking.targets.begin(wanted)
    clock.advance(takes)
    found = []

    def started(_):
        checking.targets.begin_evenly()
        found.extend(scheduler.get(each.name).next_start.timestamp() - clock.wall() for each in wanted)
        then(scheduler)
        scheduler.stop(grace=0)

    scheduler.listen(started, SchedulerStarted)
    async with scheduler:
        pass
    return found


@pytest.mark.parametrize(("interval", "takes"), [(10, 0.4), (10, 0.9), (60, 0.9)])
async def test_no_second_of_a_first_start_has_much_more_than_its_share(clock, interval, takes):
    """Counted by due times. By chance alone a second has up to a quarter more, if it has few."""
    found = await starts_of(clock, targets(interval), MemoryStore(), takes=takes)
    assert len(found) == MONITORS
    share = MONITORS / interval
    counts = Counter(int(second) for second in found if second < interval)
    assert counts[0] <= 1.3 * share, (counts[0], share)
    assert max(counts.values()) <= (1.3 if interval == 10 else 2) * share


@pytest.mark.parametrize("away", [0.5, 5.0])
async def test_a_restart_does_not_start_at_once_what_fell_due_before(clock, away):
    """Each of them is checked, with the grid as it was from then on."""
    wanted, store = targets(60), MemoryStore()
    await starts_of(clock, wanted, store, takes=0)
    clock.advance(away)
    found = await starts_of(clock, wanted, store.another(), takes=0)
    assert min(found) >= 0
    assert max(found) < 60
    assert sum(second < 1 for second in found) <= 1.5 * MONITORS / 60 + 10


async def test_the_next_attempt_is_not_put_off(clock):
    """It decides whether somebody is told."""
    wanted, store = targets(60), MemoryStore()

    def fails(scheduler):
        scheduler.get("site-0007").set_next_start(datetime.fromtimestamp(clock.wall() + 0.123, UTC))

    await starts_of(clock, wanted, store, takes=0, then=fails)
    clock.advance(4.0)
    found = await starts_of(clock, wanted, store.another(), takes=0)
    assert found[7] == pytest.approx(0.123 - 4.0)
    assert min(found[:7] + found[8:]) >= 0
