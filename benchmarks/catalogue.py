"""What is measured, on whom, and which figures are to be reached: plain values.

The sizes of a scenario are the keyword arguments of the contenders' functions; `quick` replaces some of them. Its
measures are keys of what those functions return, in the order of the table's rows.
"""

from collections.abc import Mapping

from attrs import field, frozen

BASELINE = "bare"
IN_MEMORY = "memory"


@frozen
class Target:
    """Reached when the median is at most `limit`, or `limit` times the baseline's median of the same comparison.

    `at_least`: when it is at least that.
    """

    limit: float
    of_baseline: bool = False
    at_least: bool = False

    def is_reached(self, figure: float) -> bool:
        """Whether this median, or this ratio to the baseline's, is good enough."""
        return figure >= self.limit if self.at_least else figure <= self.limit


@frozen
class Measure:
    """One row: the key in the contenders' answers, what it is called, and in which unit it is shown."""

    key: str
    label: str
    unit: str = ""
    digits: int = 1
    target: Target | None = None


@frozen
class Contender:
    """Who is measured: a script, and what its environment holds besides the standard library.

    That is our distribution, as the interpreter that runs the benchmarks finds it, or requirements with blanks between
    them, or nothing.
    """

    name: str
    title: str
    script: str
    requirement: str | None = None
    is_ours: bool = False


@frozen(kw_only=True)
class Scenario:
    """One situation, the same for all its contenders. Ours is the first of them: the targets are for it.

    `extra_s`: how much longer than the bound it may take, because much of it is preparation that nobody measures, or
    because it has to last so long.
    """

    name: str
    what: str
    sizes: Mapping[str, float]
    quick: Mapping[str, float] = field(factory=dict)
    contenders: tuple[str, ...]
    measures: tuple[Measure, ...]
    baseline: str = BASELINE
    extra_s: float = 0.0

    @property
    def ours(self) -> str:
        """Who has to reach the targets."""
        return self.contenders[0]


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender("scheduler", "ours: Scheduler", "ours.py", is_ours=True),
        Contender("sqlite", "ours: SQLite", "our_sqlite.py", is_ours=True),
        Contender("postgres", "ours: PostgreSQL", "our_postgres.py", is_ours=True),
        Contender(IN_MEMORY, "ours: in memory", "our_memory.py", is_ours=True),
        Contender("tuned", "ours: with tune_gc", "our_tuned.py", is_ours=True),
        Contender("untuned", "ours: without", "our_untuned.py", is_ours=True),
        Contender("queue", "ours: TimerQueue", "our_queue.py", is_ours=True),
        Contender("schedule", "ours: Cron", "our_schedules.py", is_ours=True),
        Contender(BASELINE, "bare call_at", "bare.py"),
        Contender("task", "task per job", "task_per_job.py"),
        Contender("heap", "heapq loop", "heap_loop.py"),
        Contender("aps3", "APScheduler 3", "aps3.py", "APScheduler>=3.11,<4"),
        # An exact pre-release needs no --pre, which would let its dependencies be pre-releases too.
        Contender("aps4", "APScheduler 4", "aps4.py", "APScheduler==4.0.0a6"),
        # Its store imports sniffio, which it does not ask for.
        Contender(
            "aps4_sqlite", "APScheduler 4: SQLite", "aps4_sqlite.py", "APScheduler[sqlalchemy]==4.0.0a6 sniffio>=1.3,<2"
        ),
        Contender("croniter", "croniter", "with_croniter.py", "croniter>=7,<8"),
        Contender("cronsim", "cronsim", "with_cronsim.py", "cronsim>=2.8,<3"),
        Contender("checks", "ours: HTTP check", "our_checks.py", is_ours=True),
        Contender("agent", "ours: the agent", "our_agent.py", is_ours=True),
        Contender("probes", "ours: the agent", "our_probes.py", is_ours=True),
        Contender("fleet", "ours: agents that share", "our_fleet.py", is_ours=True),
        Contender("far_fleet", "ours: agents that share, some of them far", "our_far_fleet.py", is_ours=True),
        Contender("h11", "h11 alone", "with_h11.py", "h11>=0.16,<1"),
        Contender("httpx2", "httpx2", "with_httpx2.py", "httpx2>=2.16,<3"),
    )
}

SCHEDULERS = ("scheduler", BASELINE, "task", "aps3", "aps4")
STORES = ("sqlite", "postgres", IN_MEMORY, "aps4_sqlite")
PEAK = Measure("peak_mib", "peak RSS", "MiB")


def peak(limit: float) -> Measure:
    """The row of peak memory, with a target."""
    return Measure("peak_mib", "peak RSS", "MiB", target=Target(limit))


def agent_runs(most_us: Target | None = None) -> tuple[Measure, ...]:
    """The rows of an agent whose monitors are due all the time, with a target for the CPU that a check takes."""
    return (
        Measure("check_us", "CPU of a check", "us", 0, most_us),
        Measure("per_second", "checks in a second", "1/s", 0),
        Measure("missed", "ticks missed", digits=0, target=Target(0)),
        Measure("not_up", "not up", digits=0, target=Target(0)),
        Measure("late_p99_ms", "lateness, 99 %", "ms", 2),
    )


def durable_runs(per_second: float) -> tuple[Measure, ...]:
    """The rows of a closed loop that shall reach so many runs a second."""
    return (
        Measure("runs_per_s", "runs per second", digits=0, target=Target(per_second, at_least=True)),
        Measure("run_us", "CPU per run", "us"),
        Measure("server_us", "CPU of the server per run", "us"),
        Measure("runs_per_commit", "runs per commit", digits=0),
        Measure("missed", "ticks missed", digits=0, target=Target(0)),
        Measure("unrecorded", "runs without a record in the store", digits=0, target=Target(0)),
        PEAK,
    )


def take_over(name: str, what: str, *, times: int, measures: tuple[Measure, ...], pause_s: float = 2.0) -> Scenario:
    """A scenario in which one of three agents goes or comes, again and again, under 1,000 starts a second."""
    return Scenario(
        name=f"fleet_{name}",
        what=f"3 agents, 20,000 jobs, 1,000 starts a second; {times} times {what}",
        sizes={"jobs": 20_000, "rate": 1_000, "times": times, "pause_s": pause_s},
        quick={"jobs": 1_000, "rate": 100, "times": 1},
        contenders=("fleet",),
        baseline="fleet",
        extra_s=60 + times * (20 + pause_s),
        measures=(
            *measures,
            Measure("marked", "ticks cut off, with a record, each time"),
            Measure("violations", "what its judge finds wrong", digits=0, target=Target(0)),
            Measure("exits", "agents that ended by themselves", digits=0, target=Target(0)),
        ),
    )


def begun_elsewhere(p99_ms: float | None, most_ms: float | None) -> tuple[Measure, ...]:
    """The rows of ticks that were due before others had taken over: how late they began there."""
    return (
        Measure("late_p50_ms", "begun elsewhere, late in the median", "ms", 0),
        Measure("late_p99_ms", "begun elsewhere, late at 99 %", "ms", 0, None if p99_ms is None else Target(p99_ms)),
        Measure("worst_p50_ms", "the latest each time, median", "ms", 0),
        Measure("late_max_ms", "begun elsewhere, the latest", "ms", 0, None if most_ms is None else Target(most_ms)),
    )


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="burst",
            what="100,000 one-shots due at the same instant",
            sizes={"jobs": 100_000},
            quick={"jobs": 10_000},
            contenders=SCHEDULERS,
            measures=(
                Measure("whole_us", "CPU per run, adding and running", "us", target=Target(0.6, of_baseline=True)),
                Measure("run_us", "CPU per run, running alone", "us", target=Target(0.6, of_baseline=True)),
                Measure("stall_ms", "longest stall of the loop", "ms", target=Target(50)),
                Measure("last_after_s", "last run ended after the due instant", "s", 2),
                PEAK,
            ),
        ),
        Scenario(
            name="steady",
            what="100,000 jobs every second, spread by phase, for 10 s",
            sizes={"jobs": 100_000, "rounds": 10},
            quick={"jobs": 10_000, "rounds": 2},
            contenders=SCHEDULERS,
            measures=(
                Measure("runs", "runs made", digits=0),
                Measure("runs_missing", "runs missing", digits=0, target=Target(0)),
                Measure("run_us", "CPU per run", "us", target=Target(7.5)),
                Measure("late_p50_ms", "lateness, median", "ms", 2, Target(1)),
                Measure("late_p99_ms", "lateness, 99 %", "ms", 2, Target(5)),
                Measure("late_max_ms", "lateness, longest", "ms"),
                Measure("drift_mean_ms", "last start against its grid, mean", "ms"),
                Measure("drift_max_ms", "last start against its grid, longest", "ms"),
                peak(150),
            ),
        ),
        Scenario(
            name="timerqueue",
            what="1,000,000 timers alone, pushed 5 s ahead of deadlines spread over 5 s",
            sizes={"timers": 1_000_000, "over_s": 5.0, "lead_s": 5.0},
            quick={"timers": 100_000, "over_s": 0.5, "lead_s": 1.0},
            contenders=("queue", BASELINE, "heap"),
            measures=(
                Measure("last_after_s", "last called after the last deadline", "s", 3, Target(0.3)),
                Measure("push_s", "pushing all", "s", 2),
                Measure("timer_us", "CPU per timer, pushing and firing", "us"),
                peak(200),
            ),
        ),
        Scenario(
            name="recursion_empty",
            what="10,000 jobs with 10 subtasks each, 100 at a time, nothing in them",
            sizes={"jobs": 10_000, "subtasks": 10, "limit": 100, "work_s": 0},
            quick={"jobs": 1_000},
            contenders=("scheduler", BASELINE, "aps3", "aps4"),
            measures=(
                Measure("seconds", "from the due instant to the last end", "s", 2, Target(0.6)),
                Measure("task_us", "CPU per task", "us"),
                PEAK,
            ),
        ),
        Scenario(
            name="recursion_sleep",
            what="10,000 jobs with 10 subtasks each, 100 at a time, each sleeps 1 ms",
            sizes={"jobs": 10_000, "subtasks": 10, "limit": 100, "work_s": 0.001},
            quick={"jobs": 1_000},
            contenders=("scheduler", BASELINE, "aps3", "aps4"),
            measures=(
                Measure("seconds", "from the due instant to the last end", "s", 2, Target(2.0)),
                Measure("task_us", "CPU per task", "us", target=Target(1.3, of_baseline=True)),
                peak(100),
            ),
        ),
        Scenario(
            name="add_remove",
            what="adding and removing a job while 100,000 wait, then removing those",
            sizes={"standing": 100_000, "pairs": 20_000},
            quick={"standing": 10_000, "pairs": 2_000},
            contenders=SCHEDULERS,
            measures=(
                Measure("pair_us", "CPU to add and remove one", "us", target=Target(15)),
                Measure("add_us", "CPU to add one of the 100,000", "us"),
                Measure("standing_mib", "RSS gained by the 100,000", "MiB"),
                Measure("kept_mib", "RSS still held after removing all", "MiB"),
                Measure("kept_objects", "objects still held after removing all", digits=0),
            ),
        ),
        Scenario(
            name="waiting",
            what="100,000 jobs every hour, spread by phase: resident memory",
            sizes={"jobs": 100_000, "interval_s": 3600},
            quick={"jobs": 10_000},
            contenders=SCHEDULERS,
            measures=(Measure("rss_bytes", "RSS per waiting job", "bytes", 0, Target(600)),),
        ),
        Scenario(
            name="waiting_traced",
            what="50,000 jobs every hour, spread by phase: counted by tracemalloc",
            sizes={"jobs": 50_000, "interval_s": 3600},
            quick={"jobs": 5_000},
            contenders=SCHEDULERS,
            measures=(Measure("traced_bytes", "allocated per waiting job", "bytes", 0, Target(600)),),
        ),
        Scenario(
            name="idle",
            what="100,000 jobs that are due in an hour, 10 s long",
            sizes={"jobs": 100_000, "seconds": 10},
            quick={"jobs": 10_000, "seconds": 1},
            contenders=SCHEDULERS,
            measures=(Measure("idle_cpu_ms", "CPU in 10 s", "ms", 2, Target(10)),),
        ),
        Scenario(
            name="cron",
            what="10,000 different cron expressions, parsed, and their first starts",
            sizes={"count": 10_000},
            quick={"count": 1_000},
            contenders=("schedule", "croniter", "cronsim", "aps3", "aps4"),
            baseline="croniter",
            measures=(
                Measure("seconds", "CPU for all", "s", 2, Target(0.6)),
                Measure("each_us", "CPU for one", "us"),
            ),
        ),
        Scenario(
            name="http_check",
            what="5,000 HTTP checks of a local server, 50 at once, each on a new connection",
            sizes={"checks": 5_000, "at_once": 50},
            quick={"checks": 500},
            contenders=("checks", "h11", "httpx2"),
            baseline="h11",
            measures=(
                Measure("check_us", "CPU for one", "us", target=Target(400)),
                Measure("per_second", "checks in a second", "1/s", 0, Target(0.7, of_baseline=True, at_least=True)),
            ),
        ),
        Scenario(
            name="https_check",
            what="2,000 of them over TLS, each with a handshake",
            sizes={"checks": 2_000, "at_once": 50},
            quick={"checks": 500},
            contenders=("checks", "h11"),
            baseline="h11",
            measures=(
                Measure("check_us", "CPU for one", "us", target=Target(2_400)),
                Measure("per_second", "checks in a second", "1/s", 0),
            ),
        ),
        Scenario(
            name="agent_check",
            what="500 HTTP monitors every second, nothing stored",
            sizes={"monitors": 500, "seconds": 30},
            quick={"seconds": 2},
            contenders=("agent",),
            baseline="agent",
            measures=agent_runs(),
        ),
        Scenario(
            name="agent_stored",
            what="500 HTTP monitors every second, each check stored in SQLite",
            sizes={"monitors": 500, "seconds": 30},
            quick={"seconds": 2},
            contenders=("agent",),
            baseline="agent",
            measures=agent_runs(Target(1_200)),
        ),
        Scenario(
            name="agent_stored_tls",
            what="500 HTTPS monitors every second, each check stored in SQLite",
            sizes={"monitors": 500, "seconds": 30},
            quick={"seconds": 2},
            contenders=("agent",),
            baseline="agent",
            measures=agent_runs(Target(2_400)),
        ),
        Scenario(
            name="agent_fleet",
            what="5,000 HTTP monitors every 10 s on 500 hosts, 50 of them black holes, in SQLite, for 10 minutes",
            sizes={"monitors": 5_000, "hosts": 500, "black_holes": 50, "seconds": 600},
            quick={"monitors": 500, "hosts": 50, "black_holes": 10, "seconds": 6},
            contenders=("agent",),
            baseline="agent",
            extra_s=600,
            measures=(
                Measure("checks", "checks", digits=0),
                Measure("missed", "ticks missed", digits=0, target=Target(0)),
                Measure("not_up", "not up, but for black holes", digits=0, target=Target(0)),
                Measure("late_p50_ms", "lateness, median", "ms", 2),
                Measure("late_p99_ms", "lateness, 99 %", "ms", 2, Target(100)),
                Measure("late_p99_first_ms", "lateness, 99 %, in the first three seconds", "ms", 2),
                Measure("late_p99_then_ms", "lateness, 99 %, from then on", "ms", 2),
                Measure("late_max_then_ms", "lateness, longest, from then on", "ms"),
                Measure("late_max_ms", "lateness, longest", "ms"),
                Measure("late_seconds", "seconds in which a check began more than 100 ms late", digits=0),
                Measure("check_us", "CPU of a check", "us", 0),
                peak(250),
                Measure("descriptors", "most descriptors", digits=0, target=Target(260)),
                Measure("out_of_descriptors", "checks without a descriptor", digits=0, target=Target(0)),
            ),
        ),
        Scenario(
            name="agent_probes",
            what="4 PostgreSQL servers (15 to 18) of 40 databases each: 164 targets, all stored in SQLite, for 45 s",
            sizes={"servers": 4, "databases": 40, "interval_s": 1.8, "seconds": 45},
            quick={"servers": 2, "databases": 3, "interval_s": 1, "seconds": 4},
            contenders=("probes",),
            baseline="probes",
            extra_s=150,
            measures=(
                Measure("runs_per_s", "probe runs in a second", "1/s", 0, Target(500, at_least=True)),
                Measure("late_p50_ms", "lateness, median", "ms", 2),
                Measure("late_p99_ms", "lateness, 99 %", "ms", 2, Target(250)),
                Measure("late_max_ms", "lateness, longest", "ms"),
                Measure("asked_p99_ms", "lateness and wait for a connection, 99 %", "ms"),
                Measure("failed", "probes that failed", digits=0, target=Target(0)),
                Measure("refused", "connections that a server refused", digits=0, target=Target(0)),
                Measure("left_out", "probes left out", digits=0),
                Measure("connections", "most connections on a server", digits=0, target=Target(3)),
                Measure("run_ms", "CPU of a run", "ms", 3, Target(0.4)),
                Measure("server_ms", "CPU of the servers for a run", "ms", 3),
                Measure("core_percent", "of a core", "%"),
                Measure("rows_per_s", "rows stored in a second", "1/s", 0),
                PEAK,
            ),
        ),
        Scenario(
            name="agent_start",
            what="the first seconds of 5,000 HTTP monitors every 10 s",
            sizes={"monitors": 5_000, "hosts": 500, "seconds": 22},
            quick={"monitors": 500, "hosts": 50, "seconds": 4},
            contenders=("agent",),
            baseline="agent",
            measures=(
                Measure("check_s", "`timerqueue check`", "s", 2, Target(0.7)),
                Measure("check_cpu_s", "`timerqueue check`: CPU", "s", 2),
                Measure("table_s", "until the table is there", "s", 2, Target(1)),
                Measure("most_of_share", "most checks begun in a second, of its share", "x", 2, Target(1.3)),
            ),
        ),
        Scenario(
            name="overload",
            what="200 jobs of 200 ms every second where 10 may run, and one quick job every second",
            sizes={"limit": 10, "slow_jobs": 200, "slow_s": 0.2, "seconds": 20},
            quick={"seconds": 2},
            contenders=("scheduler", BASELINE, "aps3", "aps4"),
            measures=(
                Measure("gap_median_s", "between starts of the quick job, median", "s", 3, Target(1.02)),
                # A slot may be all of 200 ms away, twice in a row at the worst: once early and once late.
                Measure("gap_max_s", "between starts of the quick job, longest", "s", 3, Target(1.25)),
                Measure("quick_runs", "runs of the quick job", digits=0),
                Measure("slow_runs", "runs of slow jobs", digits=0),
            ),
        ),
        Scenario(
            name="replaced",
            what="20,000 jobs of 20 ms with limits and timeouts, every 5 to 60 s, of which 1,000 a second are replaced",
            sizes={"jobs": 20_000, "per_second": 1_000, "warm_s": 5.0, "seconds": 25.0},
            quick={"jobs": 2_000, "per_second": 100, "warm_s": 1.0, "seconds": 2.0},
            contenders=("tuned", "untuned"),
            baseline="untuned",
            measures=(
                Measure("runs", "runs made", digits=0),
                Measure("late_p50_ms", "lateness, median", "ms", 2),
                Measure("late_p99_ms", "lateness, 99 %", "ms", 2, Target(30)),
                Measure("late_max_ms", "lateness, longest", "ms"),
                Measure("full_collections", "full collections", digits=0),
                Measure("collection_max_ms", "longest collection", "ms"),
                Measure("grown_mib", "RSS gained meanwhile", "MiB", target=Target(10)),
                Measure("run_us", "CPU per run, replacing included", "us"),
            ),
        ),
        Scenario(
            name="durable_sqlite",
            what="2,000 jobs, each again 1 ms after its end, for 10 s: runs whose end is committed to SQLite",
            sizes={"jobs": 2_000, "warm_s": 3.0, "seconds": 10.0},
            quick={"warm_s": 0.5, "seconds": 2.0},
            contenders=("sqlite", IN_MEMORY, "aps4_sqlite"),
            baseline=IN_MEMORY,
            measures=durable_runs(10_000),
        ),
        Scenario(
            name="durable_postgres",
            what="2,000 jobs, each again 1 ms after its end, for 10 s: runs whose end is committed to PostgreSQL",
            sizes={"jobs": 2_000, "warm_s": 3.0, "seconds": 10.0},
            quick={"warm_s": 0.5, "seconds": 2.0},
            contenders=("postgres", IN_MEMORY),
            baseline=IN_MEMORY,
            measures=durable_runs(5_000),
        ),
        Scenario(
            name="fleet_runs",
            what="durable_postgres with 1 and with 2 agents that share the store, each a process",
            sizes={"jobs": 2_000, "warm_s": 3.0, "seconds": 10.0},
            quick={"jobs": 400, "warm_s": 0.5, "seconds": 2.0},
            contenders=("fleet",),
            baseline="fleet",
            extra_s=60,
            measures=(
                Measure("one_per_s", "runs per second of one", digits=0),
                Measure("two_per_s", "runs per second of two", digits=0, target=Target(8_000, at_least=True)),
                Measure("times", "two against one", digits=2, target=Target(1.5, at_least=True)),
                Measure("one_run_us", "CPU per run, all told, one", "us", 0),
                Measure("two_run_us", "CPU per run, all told, two", "us", 0, Target(200)),
                Measure("twice", "ticks run twice", digits=0, target=Target(0)),
            ),
        ),
        Scenario(
            name="fleet_share",
            what="100,000 jobs every 20 s over 3 agents, for 10 minutes",
            sizes={"jobs": 100_000, "every_s": 20, "seconds": 600, "agents": 3},
            quick={"jobs": 2_000, "every_s": 5, "seconds": 6},
            contenders=("fleet",),
            baseline="fleet",
            extra_s=900,
            measures=(
                Measure("runs_per_s", "runs per second", digits=0),
                Measure("late_p50_ms", "lateness, median", "ms"),
                Measure("late_p99_ms", "lateness, 99 %, of the worst agent", "ms", target=Target(100)),
                Measure("late_max_ms", "lateness, longest", "ms"),
                Measure("statements_per_100", "statements for 100 runs", target=Target(1)),
                Measure("least_percent", "the least that one had", "%", target=Target(28, at_least=True)),
                Measure("most_percent", "the most that one had", "%", target=Target(38)),
                Measure("core_percent", "of a core, all agents", "%"),
            ),
        ),
        Scenario(
            name="fleet_idle",
            what="100,000 jobs that are due tomorrow, and 3 agents",
            sizes={"jobs": 100_000, "seconds": 60, "agents": 3},
            quick={"jobs": 2_000, "seconds": 2},
            contenders=("fleet",),
            baseline="fleet",
            extra_s=240,
            measures=(
                Measure("statements_per_s", "statements a second of each", digits=2, target=Target(1)),
                Measure("core_percent", "of a core, the busiest agent", "%", 2, Target(1)),
                Measure("rss_mib", "RSS of the largest agent", "MiB"),
            ),
        ),
        Scenario(
            name="fleet_limit",
            what="a limit of 7 for runs of 20 ms, as one agent's own and as that of a fleet of 3; 3 kill -9 and 3 cuts",
            sizes={"limit": 7, "jobs": 60, "takes_s": 0.02, "seconds": 10.0, "pairs": 3, "times": 3},
            quick={"seconds": 3.0, "pairs": 1, "times": 1},
            contenders=("fleet",),
            baseline="fleet",
            extra_s=240,
            measures=(
                Measure("one_per_s", "runs per second of one", digits=0),
                Measure("three_per_s", "runs per second of three", digits=0),
                Measure("percent", "three against one", "%", 0, Target(80, at_least=True)),
                Measure("most", "most at once, in their tasks' log", digits=0, target=Target(7)),
            ),
        ),
        take_over("kill", "kill -9", times=51, measures=begun_elsewhere(250, 1_000)),
        take_over("pooler", "kill -9, behind PgBouncer", times=21, measures=begun_elsewhere(None, 3_500)),
        take_over("stop", "SIGSTOP for 5 s", times=21, measures=begun_elsewhere(None, 3_500)),
        take_over("cut", "cut off for 5 s", times=21, measures=begun_elsewhere(None, 3_500)),
        take_over("leave", "an orderly stop", times=12, measures=begun_elsewhere(None, 100)),
        take_over(
            "join",
            "a fourth one comes and goes",
            times=12,
            pause_s=8.0,
            measures=(
                Measure("late_p50_ms", "lateness of all runs, median", "ms"),
                Measure("late_p99_ms", "lateness of all runs, 99 %", "ms", target=Target(100)),
                Measure("late_max_ms", "lateness of all runs, longest", "ms", 0),
                Measure("moved_percent", "of the shards moved", "%"),
            ),
        ),
        Scenario(
            name="fleet_far",
            what="an agent joins 3 that run 1,000 starts a second, 60, 100 and 60 ms away from the server",
            sizes={"jobs": 5_000, "rate": 1_000, "way_s": 0.06, "farthest_s": 0.1, "seconds": 30},
            quick={"jobs": 500, "rate": 100, "seconds": 6},
            contenders=("far_fleet",),
            baseline="far_fleet",
            extra_s=240,
            measures=(
                Measure("fair_percent", "of its fair part, after that time", "%", target=Target(80, at_least=True)),
                Measure("before_p50_ms", "lateness before, median", "ms", 0),
                Measure("before_p99_ms", "lateness before, 99 %", "ms", 0),
                Measure("since_p50_ms", "lateness since, median", "ms", 0),
                Measure("since_p99_ms", "lateness since, 99 %", "ms", 0),
                Measure("exits", "agents that ended by themselves", digits=0, target=Target(0)),
            ),
        ),
        Scenario(
            name="fleet_behind",
            what="2 agents join one that is 100 ms away from the server and, with room for 1,000 runs, seconds behind",
            sizes={"jobs": 10_000, "every_s": 10, "room": 1_000, "way_s": 0.1, "seconds": 40},
            quick={"jobs": 2_000, "every_s": 5, "room": 300, "seconds": 8},
            contenders=("far_fleet",),
            baseline="far_fleet",
            extra_s=240,
            measures=(
                Measure("behind_s", "lateness before, median", "s"),
                Measure("fair_percent", "of its fair part, who has less of these", "%", 1, Target(80, at_least=True)),
                Measure("theirs_p50_ms", "lateness of theirs then, median", "ms", 0),
            ),
        ),
        Scenario(
            name="durable_steady",
            what="1,000 jobs every second, spread by phase, for 20 s, all committed",
            sizes={"jobs": 1_000, "rounds": 20},
            quick={"jobs": 200, "rounds": 2},
            contenders=STORES,
            baseline=IN_MEMORY,
            measures=(
                Measure("runs", "runs made", digits=0),
                Measure("runs_missing", "runs missing", digits=0, target=Target(0)),
                Measure("late_p50_ms", "lateness, median", "ms", 2, Target(5)),
                Measure("late_p99_ms", "lateness, 99 %", "ms", 2, Target(50)),
                Measure("late_max_ms", "lateness, longest", "ms"),
                Measure("core_percent", "of a core", "%", target=Target(40)),
                Measure("run_us", "CPU per run", "us"),
                PEAK,
            ),
        ),
        Scenario(
            name="restart",
            what="100,000 stored jobs, of which 100 are overdue",
            sizes={"jobs": 100_000},
            quick={"jobs": 2_000},
            contenders=STORES,
            baseline=IN_MEMORY,
            extra_s=60,
            measures=(
                Measure("first_s", "first start after the beginning", "s", 2, Target(0.5)),
                Measure("overdue_s", "all that was overdue has started", "s", 2),
                Measure("loaded_s", "all jobs are there", "s", 2, Target(5)),
                PEAK,
            ),
        ),
        Scenario(
            name="add_flush",
            what="jobs added and made durable: 200 one by one, then 10,000 at once",
            sizes={"singles": 200, "jobs": 10_000},
            quick={"singles": 50, "jobs": 1_000},
            contenders=STORES,
            baseline=IN_MEMORY,
            measures=(
                Measure("single_ms", "one, median", "ms", 2, Target(5)),
                Measure("single_max_ms", "one, longest", "ms"),
                Measure("all_s", "all at once", "s", 2, Target(0.8)),
                Measure("many_s", "as many again with add_many", "s", 2),
            ),
        ),
        Scenario(
            name="unchanged",
            what='50,000 jobs that are said again with on_conflict="update", 40 times, and are as they were',
            sizes={"jobs": 50_000, "calls": 40},
            quick={"jobs": 5_000, "calls": 5},
            contenders=("sqlite", IN_MEMORY),
            baseline=IN_MEMORY,
            measures=(
                Measure("job_us", "CPU for one job, median of the calls", "us", target=Target(4)),
                Measure("stall_ms", "longest call", "ms", target=Target(400)),
                Measure("grown_mib", "RSS gained in the second half", "MiB", target=Target(2)),
            ),
        ),
    )
}
