"""The harness itself: what it asks, what it makes of the answers."""

import sys
from pathlib import Path

import attrs
import pytest

from .catalogue import CONTENDERS, SCENARIOS
from .environments import Environments
from .report import BEGIN, END, by_scenario, markdown, targets, write_between_markers
from .runner import SCRIPTS, Plan, Run, Status, ask

TINY: dict[str, dict[str, float]] = {
    "durable_sqlite": {"jobs": 200, "warm_s": 0.2, "seconds": 0.5},
    "durable_postgres": {"jobs": 200, "warm_s": 0.2, "seconds": 0.5},
    "durable_steady": {"jobs": 20, "rounds": 1},
    "fleet_runs": {"jobs": 50, "warm_s": 0.2, "seconds": 0.5},
    "fleet_limit": {"jobs": 30, "seconds": 0.5, "pairs": 1, "times": 1},
    "fleet_kill": {"jobs": 50, "rate": 50, "times": 1, "pause_s": 1},
    "restart": {"jobs": 1_500},
    "add_flush": {"singles": 3, "jobs": 100},
    "unchanged": {"jobs": 500, "calls": 2},
    "http_check": {"checks": 50, "at_once": 5},
    "https_check": {"checks": 20, "at_once": 5},
    "agent_check": {"monitors": 10, "seconds": 1},
    "agent_stored": {"monitors": 10, "seconds": 1},
    "agent_stored_tls": {"monitors": 10, "seconds": 1},
    "agent_fleet": {"monitors": 100, "hosts": 10, "black_holes": 10, "seconds": 4},
    "agent_start": {"monitors": 100, "hosts": 10, "seconds": 3},
    "agent_probes": {"servers": 1, "databases": 2, "interval_s": 1, "seconds": 3},
}


def burst_run(contender: str, number: int, **values: float) -> Run:
    """A run of the burst that ended with these figures."""
    return Run(
        scenario="burst",
        contender=contender,
        round=number,
        quick=False,
        sizes={},
        status=Status.OK,
        values=values,
        seconds=1.0,
        load=0.0,
    )


def test_each_contender_has_its_script() -> None:
    """The catalogue names files that are there, and contenders that it knows."""
    assert {contender.script for contender in CONTENDERS.values()} <= {file.name for file in SCRIPTS.glob("*.py")}
    for scenario in SCENARIOS.values():
        assert set(scenario.contenders) <= set(CONTENDERS)
        assert CONTENDERS[scenario.ours].is_ours
        assert scenario.baseline in scenario.contenders
        assert set(scenario.quick) <= set(scenario.sizes)


def test_a_relative_target_compares_medians() -> None:
    """Ours must stay below 0.6 of the bare figure, each being the median of its rounds."""
    figures = {"scheduler": (9.0, 5.0, 1.0), "bare": (10.0, 30.0, 9.0)}
    runs = [
        burst_run(name, number, whole_us=figure, stall_ms=51)
        for name, rounds in figures.items()
        for number, figure in enumerate(rounds, start=1)
    ]

    (results,) = by_scenario(runs)
    reached = {measure.key: results.is_reached(measure) for measure in results.scenario.measures}

    assert reached == {"whole_us": True, "run_us": None, "stall_ms": False, "last_after_s": None, "peak_mib": None}
    assert "| <= 0.6 x bare call_at | yes | 5.0 (0.50 x) | 10.0 |" in markdown(runs, "here").replace("≤", "<=")


def test_a_target_may_be_a_least_figure() -> None:
    """So many runs a second or more; the table says which way it counts."""
    run = attrs.evolve(burst_run("sqlite", 1, runs_per_s=10_000), scenario="durable_sqlite")

    text = markdown([run], "here")

    assert "| runs per second | ≥ 10,000 | yes | 10,000 |" in text
    assert "**no**" in markdown([attrs.evolve(run, values={"runs_per_s": 9_999})], "here")


@pytest.mark.parametrize(
    ("name", "contender"),
    [(name, contender) for name in TINY for contender in SCENARIOS[name].contenders if CONTENDERS[contender].is_ours],
)
def test_a_scenario_gives_figures(tmp_path: Path, name: str, contender: str) -> None:
    """Ours, tiny, each in its process: figures for the targets, every run with its record, and nothing missed."""
    scenario = attrs.evolve(SCENARIOS[name], quick=TINY[name])
    plan = Plan(
        scenarios=[scenario],
        contenders=[contender],
        rounds=1,
        quick=True,
        bound_s=50,
        environments=Environments(tmp_path),
    )

    (run,) = plan.carry_out(progress=lambda _run: None)

    assert (run.status, run.reason) == (Status.OK, "")
    wanted = {measure.key for measure in scenario.measures if measure.target} - {"unrecorded"}
    assert wanted <= set(run.values)
    assert run.values.get("unrecorded", 0) == run.values.get("missed", 0) == run.values.get("runs_missing", 0) == 0
    assert all(value >= 0 for value in run.values.values())


def test_what_a_measurement_leaves_in_its_folder_is_removed() -> None:
    """Each has a temporary folder of its own, which goes with it, however it ends."""
    script = "import json, tempfile; place = tempfile.mkdtemp(); print(json.dumps({'reason': place, 'status': 'n/a'}))"

    answer = ask([sys.executable, "-c", script], 30)

    assert not Path(answer["reason"]).parent.exists()


def test_a_contender_without_figures_is_named_with_its_reason() -> None:
    """The table says n/a and a line below it says why."""
    absent = Run.from_json(
        burst_run("aps3", 1).to_json() | {"status": "n/a", "reason": "has no bursts", "values": {}},
    )

    text = markdown([burst_run("bare", 1, whole_us=1.0), absent], "here")

    assert "| 1.0 | n/a |" in text
    assert "APScheduler 3: n/a, has no bursts" in text


@pytest.mark.parametrize(
    ("script", "bound_s", "outcome"),
    [
        ("import time; time.sleep(60)", 0.2, (Status.OVERRAN, "stopped after 0.2 s")),
        ("raise ValueError('no good')", 30, (Status.FAILED, "ValueError: no good")),
        ("import sys; sys.exit(3)", 30, (Status.FAILED, "ended with status 3, silently")),
        ('print(\'{"status": "n/a", "reason": "cannot"}\')', 30, (Status.UNABLE, "cannot")),
    ],
)
def test_a_measurement_that_fails_is_recorded_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, bound_s: float, outcome: tuple[Status, str]
) -> None:
    """One run with its reason, however many rounds were asked for."""
    file = tmp_path / "broken.py"
    file.write_text(script)
    monkeypatch.setattr(Environments, "command", lambda _self, _contender: [sys.executable, str(file)])
    plan = Plan(
        scenarios=[SCENARIOS["burst"]],
        contenders=["bare"],
        rounds=3,
        quick=True,
        bound_s=bound_s,
        environments=Environments(tmp_path),
    )

    runs = list(plan.carry_out(progress=lambda _run: None))

    assert [(run.status, run.reason) for run in runs] == [outcome]


def test_the_table_of_targets_has_a_row_for_each_and_a_miss_in_bold() -> None:
    """Who reads one table finds what is reached, what is not, and what the peers do."""
    runs = [burst_run("scheduler", 1, run_us=7.0, stall_ms=3.0), burst_run("bare", 1, run_us=10.0, stall_ms=900.0)]

    text = targets(runs, "here")

    assert text.startswith("here. Medians.")
    missed = (
        "| `burst` | CPU per run, running alone, us | ≤ 0.6 x bare call_at | **7.0 (0.70 x)** | bare call_at 10.0 |"
    )
    assert missed in text
    assert "| `burst` | longest stall of the loop, ms | ≤ 50 | 3.0 | bare call_at 900.0 |" in text
    assert "peak RSS" not in text


def test_the_table_is_written_between_its_markers(tmp_path: Path) -> None:
    """What stands around the markers stays; a table of an earlier run goes."""
    file = tmp_path / "README.md"
    file.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", "utf-8")

    write_between_markers(file, "new")

    assert file.read_text("utf-8") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    with pytest.raises(ValueError, match="has no lines"):
        write_between_markers(Path(__file__), "new")
