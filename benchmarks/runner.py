"""Measurements: each in a process of its own, the contenders taking turns, each with a time that it may not exceed."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen

from .catalogue import CONTENDERS, Contender, Scenario
from .environments import EnvironmentFailed, Environments

SCRIPTS = Path(__file__).parent / "contenders"


class Status(StrEnum):
    """How a measurement ended."""

    OK = "ok"
    UNABLE = "n/a"
    OVERRAN = "overran"
    FAILED = "failed"


@frozen(kw_only=True)
class Run:
    """One measurement. `load` is the machine's one-minute load just before it began."""

    scenario: str
    contender: str
    round: int
    quick: bool
    sizes: dict[str, float]
    status: Status
    reason: str = ""
    values: dict[str, float] = field(factory=dict)
    version: str = ""
    seconds: float
    load: float

    def to_json(self) -> dict[str, Any]:
        """The run as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Run":
        """The run that `to_json` gave."""
        return cls(**value | {"status": Status(value["status"])})


@frozen(kw_only=True)
class Plan:
    """What is to be measured: every round of a scenario measures all its contenders once, one after the other."""

    scenarios: Sequence[Scenario]
    contenders: Sequence[str]
    rounds: int
    quick: bool
    bound_s: float
    environments: Environments
    at_once: int = 1
    """Scenarios at a time. With more than one the figures mean nothing: they show whether everything is in order."""

    def carry_out(self, progress: Callable[[Run], None]) -> Iterator[Run]:
        """Each run as it ends. A contender that did not succeed in a scenario is not asked for it again."""
        for run in self._measured():
            progress(run)
            yield run

    def _measured(self) -> Iterator[Run]:
        if self.at_once == 1:
            yield from chain.from_iterable(map(self._scenario, self.scenarios))
            return
        with ThreadPoolExecutor(self.at_once) as pool:
            together = [pool.submit(lambda each=each: list(self._scenario(each))) for each in self.scenarios]
            for done in as_completed(together):
                yield from done.result()

    def _scenario(self, scenario: Scenario) -> Iterator[Run]:
        able = [CONTENDERS[name] for name in scenario.contenders if name in self.contenders]
        for number in range(1, self.rounds + 1):
            for contender in tuple(able):
                run = self._measure(scenario, contender, number)
                yield run
                if run.status is not Status.OK:
                    able.remove(contender)

    def _measure(self, scenario: Scenario, contender: Contender, number: int) -> Run:
        sizes = {**scenario.sizes, **scenario.quick} if self.quick else scenario.sizes
        load, began = os.getloadavg()[0], time.monotonic()
        try:
            command = self.environments.command(contender)
            began = time.monotonic()
            arguments = [str(SCRIPTS / contender.script), scenario.name, json.dumps(sizes)]
            answer = ask([*command, *arguments], self.bound_s + scenario.extra_s)
        except EnvironmentFailed as error:
            answer = {"status": Status.FAILED, "reason": f"could not be installed: {error}"}
        return Run.from_json(
            {
                "scenario": scenario.name,
                "contender": contender.name,
                "round": number,
                "quick": self.quick,
                "sizes": dict(sizes),
                "seconds": time.monotonic() - began,
                "load": load,
                **answer,
            }
        )


def ask(command: list[str], bound_s: float) -> dict[str, Any]:
    """The answer, or what came in its place. The folder for databases is gone, also if the contender was stopped."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # a database server may be another user
        return _ask_in(folder, command, bound_s)


def _ask_in(folder: str, command: list[str], bound_s: float) -> dict[str, Any]:
    variables = os.environ | {"TMPDIR": folder}
    try:
        done = subprocess.run(command, env=variables, check=False, capture_output=True, text=True, timeout=bound_s)
    except subprocess.TimeoutExpired:
        return {"status": Status.OVERRAN, "reason": f"stopped after {bound_s:g} s"}
    if done.returncode or not done.stdout.strip():
        last = (done.stderr.strip() or f"ended with status {done.returncode}, silently").splitlines()[-1]
        return {"status": Status.FAILED, "reason": last}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
