"""Acts on many jobs by a filter. The first call counts, and gives a token. The second call brings it, and acts."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from hashlib import blake2b, sha256
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

from anyio.lowlevel import checkpoint
from attrs import evolve, frozen

from ..._jobs import AskedRun, Handle as Job
from ..._values import RunMissed
from .._protocol import INSTANT, JSON, TEXT, Answer, Ask, Problem, given, optional, problem_of
from .listing import PIECE, Filter
from .writes import durable, refuse_unless_running

SLICE: Final = 50
"""Jobs between two turns of the scheduler's loop: all at once, they would hold up other jobs."""

HOLDS_S: Final = 60.0
"""Seconds for which a token holds."""

MOST_TOLD: Final = 20
"""Failures that an answer tells; all are counted."""

MOST_FAILURES: Final = 1_000
"""Failures after which the rest is left alone."""


@frozen(kw_only=True)
class Confirmed:
    """The second call has the token of the first."""

    token: str | None = given(optional(TEXT), None, "What the first call answered. Without it nothing changes.")


@frozen(kw_only=True)
class ConfirmedPause(Confirmed):
    """How long the jobs rest, and why."""

    until: datetime | None = given(  # noqa: RUF009 - a field
        optional(INSTANT), None, "When the pauses end by themselves; null: with resume."
    )
    reason: str | None = given(optional(TEXT), None, "Why, for people.")


async def pause_jobs(ask: Ask[Filter, ConfirmedPause]) -> Answer:
    """Pause all jobs of a filter. Without a token: count them, and answer a token."""
    body = ask.body
    return await _bulk(ask, "pause", lambda job: job.pause(body.reason, until=body.until))


async def resume_jobs(ask: Ask[Filter, Confirmed]) -> Answer:
    """Resume all jobs of a filter. Without a token: count them, and answer a token."""
    return await _bulk(ask, "resume", lambda job: job.resume())


async def skip_jobs(ask: Ask[Filter, Confirmed]) -> Answer:
    """Leave out the next start of all jobs of a filter. Without a token: count them, and answer a token."""
    return await _bulk(ask, "skip", lambda job: job.skip())


async def run_jobs(ask: Ask[Filter, Confirmed]) -> Answer:
    """Run all jobs of a filter once, now, under their limits. Without a token: count them, and answer a token."""
    return await _bulk(ask, "run", lambda job: job.run_now())


async def _bulk(ask: Ask[Filter, Any], act: str, verb: Callable[[Job], AskedRun | None]) -> Answer:
    refuse_unless_running(ask.s)
    jobs = [job async for job in _chosen(ask)]
    now = ask.means.clock.monotonic()
    if ask.body.token is None:
        until = round(now + HOLDS_S)
        found = {"act": act, "count": len(jobs), "token": _token(ask, act, jobs, until), "holds": HOLDS_S}
        return Answer(HTTPStatus.OK, found)
    _check(ask, act, jobs, now)
    failures = await _done(ask, jobs, verb)
    told = [failure for _, failure in zip(range(MOST_TOLD), failures, strict=False)]
    return Answer(HTTPStatus.OK, {"act": act, "count": len(jobs), "failed": len(failures), "failures": told})


async def _chosen(ask: Ask[Filter, Any]) -> AsyncIterator[Job]:
    """Yield the jobs of the filter. Parts are left out: they go with the whole job."""
    rest = iter(ask.s.jobs())
    while piece := list(islice(rest, PIECE)):
        for job in filter(ask.query.admits, piece):
            if not job.policy.is_part:
                yield job
        await checkpoint()


async def _done(ask: Ask[Filter, Any], jobs: list[Job], verb: Callable[[Job], AskedRun | None]) -> list[JSON]:
    """Act on the jobs, in slices, and return what failed. The acts are durable."""
    failures, asked = list[JSON](), list[AskedRun]()
    ask.trace.step = "unknown"
    rest = iter(jobs)
    while len(failures) < MOST_FAILURES and (piece := list(islice(rest, SLICE))):
        for job in piece:
            try:
                run = verb(job)
            except Exception as exc:
                if (problem := problem_of(exc)) is None:
                    raise
                failures.append({"job_id": job.id, "detail": problem.body["detail"]})
            else:
                asked += [run] if run is not None else []
        await ask.s.turn()
    await durable(ask)
    return [*failures, *_not_run(asked), *({"job_id": job.id, "detail": "left alone"} for job in rest)]


def _not_run(asked: list[AskedRun]) -> Iterator[JSON]:
    for run in asked:
        match run.answer:
            case RunMissed(reason=reason):
                yield {"job_id": run.job_id, "detail": f"it did not run: {reason.value}"}
            case _:
                pass


# -- tokens ------------------------------------------------------------------------------------------------------------


def _token(ask: Ask[Filter, Any], act: str, jobs: list[Job], until: int) -> str:
    """Sign who asks for what. Any other caller, act, filter, body, set of jobs or process has another token."""
    assert ask.who is not None
    ids = sha256()
    for id in sorted(job.id for job in jobs):
        ids.update(f"{len(id)}:{id}".encode("utf-8", "surrogatepass"))
    said = repr((ask.who.name, act, ask.query, evolve(ask.body, token=None), ids.hexdigest(), until))
    signature = hmac.new(ask.means.secret, said.encode("utf-8", "backslashreplace"), blake2b)
    return f"{until}.{signature.hexdigest()[:64]}"


def _check(ask: Ask[Filter, Any], act: str, jobs: list[Job], now: float) -> None:
    token = ask.body.token
    digits = token.partition(".")[0]
    until = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 18 else 0  # noqa: PLR2004 - any
    expected = _token(ask, act, jobs, until)
    if until < now or not hmac.compare_digest(expected.encode(), token.encode("utf-8", "backslashreplace")):
        detail = (
            "the token does not hold: it is old, or is for another caller, act, body or filter, or the filter has "
            "other jobs now: ask without a token, and look at the count"
        )
        raise Problem(HTTPStatus.CONFLICT, "confirmation", detail)
