"""The uptime of a target as the command line prints it, from the history that an agent has left."""

import json
from datetime import timedelta

from schedule import Every, Missed
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.show import json_uptime, plain_uptime, uptime_lines
from uptime_agent.standing import TASK, Board, CheckTask, Recall
from uptime_agent.standing.status import TargetStatus

HOUR = 3_600


class Agent:
    """An agent of one target, every 60 s, that is down in between these seconds; it keeps its history."""

    def __init__(self, down):
        self.down, self.store = down, MemoryStore()

    async def run(self):
        is_down = self.down[0] <= (self.clock.wall() - START.timestamp()) < self.down[1]
        await self.clock.sleep(0.25)
        return CheckResult(status=Status.DOWN if is_down else Status.UP, latency=0.25)

    def live(self, since, seconds):
        """Play so many seconds as a process of its own; return its records, latest first."""
        target = TargetStatus("api", "http://h", "http", holds=lambda _ended: 75.0)
        board = Board([target])

        async def build(scheduler, clock):
            self.clock = clock
            recall = Recall(scheduler, board.targets, board.remembered, clock)
            scheduler.register(TASK, CheckTask({"api": self}, board.targets, recall.recall, clock).run)
            scheduler.listen(board.listen)
            options = {"missed": Missed.SKIP, "grace": 6, "on_conflict": "update"}
            scheduler.add(TASK, Every(60, anchor=START), id="api", args=("api",), **options)
            await clock.sleep(seconds - 0.5)
            self.records = await scheduler.history("api", limit=10_000)

        simulate(build, seconds, start=START + timedelta(seconds=since), store=self.store)
        return self.records


def test_uptime_survives_restarts_and_counts_no_time_in_which_nobody_looked():
    """Up for an hour but for six minutes, away for one, up for one more."""
    agent = Agent(down=(HOUR - 1_080, HOUR - 720))
    agent.live(0, HOUR + 30)
    records = agent.live(2 * HOUR, HOUR + 1)
    now = START.timestamp() + 3 * HOUR
    found = [json.loads(line) for line in uptime_lines("api", records, now, json_uptime)]
    assert [each["window"] for each in found] == ["1 h", "24 h", "7 d", "30 d"]
    hour, day, *_ = found
    assert hour["uptime"] == 1.0
    assert 0.98 < hour["known"] <= 1.0
    assert abs(day["uptime"] - (1 - 360 / 7_140)) < 0.003
    assert abs(day["known"] - 2 / 24) < 0.002
    assert day["latency_ms"] == {"p50": 250.0, "p95": 250.0, "p99": 250.0}


def test_uptime_is_printed_with_how_much_is_known():
    """Nothing is rounded up to all of it."""
    records = Agent(down=(1_800, 1_860)).live(0, HOUR + 30)
    now = START.timestamp() + HOUR + 1
    hour, _, week, _ = uptime_lines("api", records, now, plain_uptime)
    assert hour.startswith("api  last 1 h    98.3")
    assert "% up" in hour
    assert "latency p50 250 ms, p95 250 ms, p99 250 ms" in hour
    assert week.startswith("api  last 7 d    not enough known  0.5")  # or people take it for the uptime of a week


def test_without_records_nothing_is_known():
    """The lines say so."""
    assert next(uptime_lines("api", [], 1e9, plain_uptime)) == "api  last 1 h    not known         0 % of it known"


async def test_the_command_prints_the_uptime_of_a_target(config, ran):
    """From the store that the agent has written; without a target it says what is missing."""
    file = config()
    assert (await ran("run", file, "--for", "1s", "--plain"))[0] == 0
    code, shown, _ = await ran("history", "db", "--config", file, "--uptime", "--json")
    hour, *others = [json.loads(line) for line in shown.splitlines()]
    assert (code, hour["uptime"], len(others)) == (0, 0.0, 3)
    assert 0 < hour["known"] < 0.01
    code, _, said = await ran("history", "--config", file, "--uptime")
    assert code == 2
    assert "give the TARGET" in said


GROUP = '[[group]]\nname = "both"\nmembers = ["site", "db"]\ndown_if = "any"\n'


async def test_the_command_prints_the_history_and_the_uptime_of_a_group(config, ran):
    """From those of its members: it is down as long as enough of them are."""
    file = config(GROUP)
    assert (await ran("run", file, "--for", "1s", "--plain"))[0] == 0
    code, shown, _ = await ran("history", "both", "--config", file, "--json", "--limit", "6")
    names = [json.loads(line)["name"] for line in shown.splitlines()]
    assert (code, len(names), set(names)) == (0, 6, {"site", "db"})
    code, shown, _ = await ran("history", "both", "--config", file, "--uptime", "--json")
    hour, *_ = [json.loads(line) for line in shown.splitlines()]
    assert (code, hour["name"], hour["uptime"], hour["latency_ms"]) == (0, "both", 0.0, {})
