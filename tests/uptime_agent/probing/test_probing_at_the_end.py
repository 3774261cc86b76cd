"""Servers that tables name while the agent stops."""

from pathlib import Path

from kit import settle, until
from scheduler import Scheduler
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.config import read_config
from uptime_agent.probing import Probing

SERVER = """
[[postgres]]
name = "one"
dsn = "postgresql://postgres@127.0.0.1:1/postgres"
"""
CHECK = """
[[check]]
name = "site"
url = "tcp://127.0.0.1:1"
"""


def config_of(folder, text):
    file = Path(folder) / "uptime.toml"
    file.write_text(text)
    return read_config(file, {})


async def test_servers_that_come_while_the_agent_stops_are_left_alone(tmp_path):
    """The agent ended with status 1: the stopped scheduler refused their jobs."""
    async with Scheduler(limit=10) as stopped:
        pass
    probing = Probing(
        config_of(tmp_path, CHECK), stopped, Resolver({}), SystemClock(), lambda _: None,
        learn=lambda _: None, say=lambda _: None,
    )  # fmt: skip
    async with probing.running():
        assert (await probing.follow(config_of(tmp_path, CHECK + SERVER))).added == ("one",)
        await until(lambda: any(pair.anchor is not None for pair in probing._fleet._jobs.pairs.values()))
        await settle()
