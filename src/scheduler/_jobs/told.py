"""A job as a value: its spec, and how it stands."""

from __future__ import annotations

from functools import partial

from schedule import ScheduleError, text_of

from .._shape import JobInfo, JobSpec, typed
from .._values import InvalidJob, Pause, Policy, cut
from .call import LONGEST_CALL, on_the_loop
from .definition import Call
from .job import Job
from .tasks import Tasks


def spec_of(job: Job, tasks: Tasks) -> JobSpec:
    """Raises InvalidJob if the job has no spec."""
    if job.unfit is not None and not job.unfit.is_readable:
        msg = f"job {job.id!r} has no spec, because its row cannot be read: {job.error}"
        raise InvalidJob(msg)
    task = job.task or tasks.name_of(job.func)
    try:
        return JobSpec.of(
            job.id, task, job.schedule, job.args, job.kwargs, job.policy,
            inline=is_inline(job.call, task, tasks), tags=job.tags, name=job.name,
        )  # fmt: skip
    except ScheduleError as exc:
        msg = f"schedule: {exc}"
        raise InvalidJob(msg) from None
    except RuntimeError as exc:  # another thread changes a dict in them, or a list holds itself
        msg = f"args or kwargs cannot be read: {exc}"
        raise InvalidJob(msg) from None


def is_inline(call: Call, task: str | None, tasks: Tasks) -> bool:
    """Return whether a job is inline by its own option, not by its task's."""
    return call is on_the_loop and not (task is not None and tasks.is_inline(task))


def is_like(job: Job, spec: JobSpec, policy: Policy, func: object, *, inline: bool, tasks: Tasks) -> bool:
    """Return whether the job has this spec, but for `policy` and `inline`, given apart. Any thread."""
    if job.unfit is not None or (job.policy is not policy and job.policy != policy):
        return False
    if job.name != spec.name or job.tags != spec.tags or is_inline(job.call, spec.task, tasks) != inline:
        return False
    if job.func != func if job.task is None else job.task != spec.task:
        return False
    try:
        if text_of(job.schedule, job.key) != spec.schedule:
            return False
    except ScheduleError:
        return False
    return bool(typed(job.args) == typed(spec.args) and typed(dict(job.kwargs)) == typed(spec.kwargs))


def info_of(job: Job, pauses: tuple[Pause, ...], tasks: Tasks) -> JobInfo:
    spec, error = None, None
    try:
        spec = spec_of(job, tasks)
    except InvalidJob as exc:
        error = str(exc)
    return JobInfo(
        id=job.id,
        spec=spec,
        spec_error=error,
        func=_name_of(job),
        state=job.state,
        next_start=job.next_start,
        pauses=pauses,
        error=job.error,
        node=job.agent,
        is_ours=job.is_ours,
        statistics=job.statistics(),
    )


def _name_of(job: Job) -> str:
    """Return the name of the function or of its type. Never its repr, which may show arguments."""
    func: object = job.func
    while isinstance(func, partial):
        func = func.func
    name = getattr(func, "__qualname__", None)
    return cut(name if isinstance(name, str) else type(func).__qualname__, LONGEST_CALL)
