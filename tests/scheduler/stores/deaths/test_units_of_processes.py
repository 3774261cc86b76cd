"""A limit of the fleet over three processes that are killed and cut off, judged by what their tasks wrote."""

import time
from contextlib import ExitStack

import pytest

from kit import wait_until
from proxy import Proxy
from units_processes import Agents

LIMIT = 7


WINDOW = 1.0


@pytest.fixture
def agents(postgres_schema, tmp_path):
    agents = Agents(postgres_schema, tmp_path / "log", jobs=30, fleet=LIMIT, takes=0.4, every="800ms")
    yield agents
    agents.close()


@pytest.mark.slow
def test_three_processes_never_run_more_than_the_limit_of_the_fleet_through_kills_and_cuts(postgres_server, agents):
    """Each is killed and started again, and each is cut off for longer than its lease."""
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(postgres_server.folder / ".s.PGSQL.5432")) for _ in range(3)]
        dsns = [proxy.dsn for proxy in proxies]
        for number, dsn in enumerate(dsns):
            agents.start(f"a{number}-0", dsn)
        agents.until_more(more=20)
        for number, dsn in enumerate(dsns):
            agents.kill(f"a{number}-0")
            agents.until_more(more=10)
            agents.start(f"a{number}-1", dsn)
            agents.until_more(more=10)
        for number, proxy in enumerate(proxies):
            proxy.black_hole()
            ended = time.monotonic() + 4.5
            wait_until(lambda ended=ended: time.monotonic() > ended)
            agents.until_more(more=10)
            proxy.pass_on()
            agents.until_more(f"a{number}-1", 5)
        agents.stop()
    assert agents.most_at_once() == LIMIT


@pytest.mark.slow
def test_three_processes_never_begin_more_in_a_window_than_a_rate_of_the_fleet_through_kills(postgres_server, agents):
    """Each is killed and started again. What the dead had rests from the end of their leases on."""
    agents.config |= {"window": WINDOW, "every": "3s"}
    for number in range(3):
        agents.start(f"a{number}-0", postgres_server.dsn)
    agents.until_more(more=LIMIT)
    for number in range(3):
        agents.kill(f"a{number}-0")
        agents.until_more(more=LIMIT)
        agents.start(f"a{number}-1", postgres_server.dsn)
        agents.until_more(more=LIMIT)
    agents.stop()
    assert agents.most_within(WINDOW) == LIMIT
