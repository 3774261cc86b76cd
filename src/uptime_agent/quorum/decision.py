"""A target's status by its nodes' findings."""

from __future__ import annotations

from collections.abc import Sequence

from ..checks import CheckResult, Status
from .rule import Quorum


def decide(votes: Sequence[CheckResult], quorum: Quorum) -> tuple[Status, str | None]:
    """Return the status by all nodes' votes, and why it is not up.

    DOWN: enough votes. UP: too few votes differ; DEGRADED if any of them is bad. Else UNKNOWN.
    """
    asked = len(votes)
    if asked < quorum.least_of(asked) or not asked:
        return Status.UNKNOWN, _too_few(asked, quorum)
    down = [each for each in votes if each.status is Status.DOWN]
    well = [each for each in votes if each.status in (Status.UP, Status.DEGRADED)]
    needed = quorum.votes_of(asked)
    if len(down) >= needed:
        return Status.DOWN, f"down at {len(down)} of {asked} agents: {down[0].error or Status.DOWN.value}"
    if asked - len(well) >= needed:
        return Status.UNKNOWN, _unsure(votes, len(down))
    bad = down or [each for each in well if each.status is Status.DEGRADED]
    if not bad:
        return Status.UP, None
    return (
        Status.DEGRADED,
        f"{bad[0].status.value} at {len(bad)} of {asked} agents: {bad[0].error or 'no reason given'}",
    )


def _too_few(asked: int, quorum: Quorum) -> str:
    labels = ", ".join(f"{label}={value}" for label, value in quorum.where.items())
    which = f" with {labels}" if labels else ""
    return f"{asked} agents{which} are there, and {max(quorum.least_of(asked), 1)} are needed"


def _unsure(votes: Sequence[CheckResult], down: int) -> str:
    silent = [each for each in votes if each.status is Status.UNKNOWN]
    why = f": {silent[0].address}: {silent[0].error}" if silent else ""
    return f"{len(silent)} of {len(votes)} agents do not know, {down} found it down{why}"
