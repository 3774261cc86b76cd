from __future__ import annotations

from attrs import frozen

from .._values import Outcome, Policy


@frozen
class Decision:
    """`retry_in`: seconds. `disable`: why the job must not start again."""

    retry_in: float | None = None
    disable: str | None = None


GO_ON = Decision()


def after_run(
    outcome: Outcome,
    failures: int,
    policy: Policy,
    next_start_in: float | None,
    random: float,
    *,
    interval: float | None = None,
) -> Decision:
    """`failures`: in a row, with this run. `next_start_in`, `interval`: seconds. `random`: in [0, 1)."""
    retry = policy.retry
    if retry is None or outcome not in (Outcome.FAILED, Outcome.TIMED_OUT):
        return GO_ON
    if retry.is_exhausted(failures):
        return Decision(disable=f"failed {failures} times in a row, with {retry.max_retries} retries allowed")
    delay = retry.delay(failures, random, interval)
    if next_start_in is not None and next_start_in <= delay and not retry.past_next_start:
        return GO_ON
    return Decision(retry_in=delay)
