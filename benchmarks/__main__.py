"""`python -m benchmarks`: measure, show, keep."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from .catalogue import CONTENDERS, SCENARIOS
from .environments import DEFAULT_FOLDER, Environments
from .report import machine, markdown, targets, write_between_markers
from .runner import Plan, Run, Status

README = Path(__file__).with_name("README.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command has been carried out; the answer is the exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.command(options)
    return status


def compare(options: argparse.Namespace) -> int:
    """Measure what was asked for, print the tables, keep them where asked. 1: something failed (n/a is no failure)."""
    plan = Plan(
        scenarios=[SCENARIOS[name] for name in options.scenario or SCENARIOS],
        contenders=options.contender
        or tuple(name for name, each in CONTENDERS.items() if each.is_ours or not options.ours),
        rounds=options.repeat,
        quick=options.quick,
        bound_s=options.bound,
        environments=Environments(options.envs.expanduser()),
        at_once=options.at_once,
    )
    runs: list[Run] = []
    for run in plan.carry_out(progress=_say):
        runs.append(run)
        # After every run, so that an interrupted comparison keeps what it has.
        if options.json:
            _save(options.json, machine(), runs)
    _show(runs, machine(), write=options.write)
    return int(any(run.status is Status.FAILED for run in runs))


def report(options: argparse.Namespace) -> int:
    """Print the tables of comparisons that were kept as JSON; several files are put together."""
    kept = [json.loads(file.read_text("utf-8")) for file in options.files]
    runs = [Run.from_json(run) for comparison in kept for run in comparison["runs"]]
    if len({run.quick for run in runs}) > 1:
        print("some of these files hold quick sizes and some full ones: show them apart", file=sys.stderr)
        return 2
    where = "; ".join(dict.fromkeys(comparison["machine"] for comparison in kept))
    _show(runs, where, write=options.write)
    return 0


def list_all(_: argparse.Namespace) -> int:
    """Print the scenarios and the contenders."""
    print("scenarios")
    for scenario in SCENARIOS.values():
        print(f"  {scenario.name:16} {scenario.what}; {', '.join(scenario.contenders)}")
    print("contenders")
    for contender in CONTENDERS.values():
        print(f"  {contender.name:16} {contender.title}; {contender.requirement or 'this interpreter'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    comparing = commands.add_parser("compare", help="measure, beside the peers")
    comparing.set_defaults(command=compare)
    comparing.add_argument("--quick", action="store_true", help="a tenth of the size: is the harness in order?")
    comparing.add_argument("--scenario", nargs="+", choices=SCENARIOS, metavar="NAME", help="only these")
    comparing.add_argument("--contender", nargs="+", choices=CONTENDERS, metavar="NAME", help="only these")
    comparing.add_argument("--ours", action="store_true", help="only ours, without the peers")
    comparing.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds, of which the median counts (5)")
    comparing.add_argument("--bound", type=float, default=60, metavar="S", help="seconds one measurement may take (60)")
    comparing.add_argument("--at-once", type=int, default=1, metavar="N", help="scenarios at a time: no figures (1)")
    comparing.add_argument("--envs", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help="peers' environments")
    comparing.add_argument("--json", type=Path, metavar="FILE", help="keep every single run here")
    comparing.add_argument("--write", action="store_true", help="put what has a target into benchmarks/README.md")

    reporting = commands.add_parser("report", help="show comparisons that were kept with --json")
    reporting.set_defaults(command=report)
    reporting.add_argument("files", nargs="+", type=Path, metavar="FILE")
    reporting.add_argument("--write", action="store_true", help="put what has a target into benchmarks/README.md")

    listing = commands.add_parser("list", help="show scenarios and contenders")
    listing.set_defaults(command=list_all)
    return parser


def _say(run: Run) -> None:
    figures = "  ".join(f"{key} {value:,.3f}" for key, value in run.values.items())
    print(
        f"{run.scenario} {run.contender} #{run.round} ({run.seconds:.1f} s, load {run.load:.1f}): "
        f"{run.status} {run.reason}{figures}",
        file=sys.stderr,
        flush=True,
    )


def _save(file: Path, where: str, runs: Sequence[Run]) -> None:
    kept = {"machine": where, "runs": [run.to_json() for run in runs]}
    file.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def _show(runs: Sequence[Run], where: str, *, write: bool) -> None:
    print(markdown(runs, where))
    if write:
        write_between_markers(README, targets(runs, where))


if __name__ == "__main__":
    sys.exit(main())
