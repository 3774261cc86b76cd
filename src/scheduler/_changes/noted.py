"""The verbs of users, noted: who changed what. Verbs that the scheduler calls itself are not noted.

Pauses, resumes and new sizes of limits are always noted. All else is noted inside `acting_as`: jobs that code adds
cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from schedule import ScheduleError

from .._control import PartedRegistry
from .._jobs import AskedRun, Job
from .._shape import SomeSchedule, to_json
from .._values import InvalidJob, Pause, scope_of_job
from ..stores import StoredChange
from .acting import acting, nobody
from .book import ChangeBook
from .change import differences


class NotedRegistry(PartedRegistry):
    book: ChangeBook
    """Set once, before the first verb."""

    def add(self, *args: Any, **kwargs: Any) -> Job:
        """See Registry."""
        if acting() is None:
            return super().add(*args, **kwargs)
        return self._added(super().add, *args, **kwargs)

    def add_parted(self, *args: Any, **kwargs: Any) -> Job:
        """See PartedRegistry."""
        if acting() is None:
            return super().add_parted(*args, **kwargs)
        return self._added(super().add_parted, *args, **kwargs)

    def add_many(self, *args: Any, **kwargs: Any) -> list[Job]:
        """See Registry."""
        if acting() is None:
            return super().add_many(*args, **kwargs)
        present = {job.id: (job, self._said(job)) for job in self._jobs.jobs()}
        with nobody():
            jobs = super().add_many(*args, **kwargs)
        for job in jobs:
            self._note_put(job, *present.get(job.id, (None, None)))
        return jobs

    def _added(self, add: Any, id: str | None, *args: Any, **kwargs: Any) -> Job:
        present = None if id is None else self._jobs.find(id)
        before = None if present is None else self._said(present)
        with nobody():
            job: Job = add(id, *args, **kwargs)
        self._note_put(job, present, before)
        return job

    def _note_put(self, job: Job, present: Job | None, before: Mapping[str, Any] | None) -> None:
        made = self.book.made("add", scope_of_job(job.id))
        if present is None:
            self.book.note(made, None, _spare(self._said(job)))
        elif job is present:
            self.early.ask(job, self._note_update, job, made._replace(act="update"), before)
        else:
            self.book.note(made._replace(act="replace"), _spare(before), _spare(self._said(job)))

    def remove(self, job: Job) -> None:
        """See Verbs."""
        if acting() is None or job.is_removed:
            super().remove(job)
            return
        before, made = self._said(job), self.book.made("remove", scope_of_job(job.id))
        with nobody():
            super().remove(job)
        self.book.note(made, _spare(before))

    def update(self, job: Job, schedule: SomeSchedule | None, changes: Mapping[str, Any]) -> None:
        """See Verbs."""
        if acting() is None:
            super().update(job, schedule, changes)
            return
        before, made = self._said(job), self.book.made("update", scope_of_job(job.id))
        super().update(job, schedule, changes)
        self.early.ask(job, self._note_update, job, made, before)

    def _note_update(self, job: Job, made: StoredChange, before: Mapping[str, Any] | None) -> None:
        """On the loop, after the change."""
        was, now = differences(before or {}, self._said(job) or {})
        if was != now:
            self.book.note(made, was, now)

    def pause(self, job: Job, reason: str | None, until: datetime | None = None) -> None:
        """See Verbs."""
        before = _pause_of(job.paused_by)
        super().pause(job, reason, until)
        made = self.book.made("pause", scope_of_job(job.id), reason=reason)
        self._note(job, made, before, {"reason": reason, "until": to_json(until)})

    def resume(self, job: Job) -> None:
        """See Verbs."""
        before = _pause_of(job.paused_by)
        super().resume(job)
        if before is not None or acting() is not None:
            self._note(job, self.book.made("resume", scope_of_job(job.id)), before)

    def run_now(self, job: Job) -> AskedRun:
        """See Verbs."""
        asked = super().run_now(job)
        if acting() is not None:
            self._note(job, self.book.made("run", scope_of_job(job.id)))
        return asked

    def set_next_start(self, job: Job, at: datetime) -> None:
        """See Verbs."""
        if acting() is None:
            super().set_next_start(job, at)
            return
        before = {"next_start": to_json(job.next_start)}
        super().set_next_start(job, at)
        made = self.book.made("set-next-start", scope_of_job(job.id))
        self._note(job, made, before, {"next_start": to_json(at)})

    def skip(self, job: Job) -> None:
        """See Verbs."""
        self._note_start(job, "skip", super().skip)

    def supersede(self, job: Job) -> None:
        """See Verbs."""
        self._note_start(job, "supersede", super().supersede)

    def _note_start(self, job: Job, act: str, verb: Any) -> None:
        if acting() is None:
            verb(job)
            return
        before = {"next_start": to_json(job.next_start)}
        verb(job)
        self._note(job, self.book.made(act, scope_of_job(job.id)), before)

    def pause_scope(self, scope: str, reason: str | None, until: datetime | None) -> None:
        """See Verbs."""
        before = self._pause_of_scope(scope)
        super().pause_scope(scope, reason, until)
        made = self.book.made("pause", scope, reason=reason)
        self.book.note(made, before, {"reason": reason, "until": to_json(until)})

    def resume_scope(self, scope: str) -> None:
        """See Verbs."""
        before = self._pause_of_scope(scope)
        super().resume_scope(scope)
        if before is not None or acting() is not None:
            self.book.note(self.book.made("resume", scope), before)

    def note_set(self, owner: str, **ids: Sequence[str]) -> None:
        """Note that a set was put, with the numbers of changed jobs. The jobs have changes of their own."""
        if acting() is not None and any(ids.values()):
            self.book.note(
                self.book.made("sync", f"set:{owner}"), None, {name: len(some) for name, some in ids.items()}
            )

    def _pause_of_scope(self, scope: str) -> Mapping[str, Any] | None:
        return _pause_of(next((pause for pause in self._pausing.pauses if pause.scope == scope), None))

    def _note(
        self,
        job: Job,
        made: StoredChange,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Note it after the change, which may wait for the store to be read."""
        self.early.ask(job, self.book.note, made, before, after)

    def _said(self, job: Job) -> dict[str, Any] | None:
        """Return the job's definition. None: it has none as JSON."""
        try:
            found: dict[str, Any] = to_json(self.spec(job))
        except (InvalidJob, ScheduleError):
            return {"id": job.id}
        return found


def _pause_of(pause: Pause | None) -> Mapping[str, Any] | None:
    return None if pause is None else {"reason": pause.reason, "until": to_json(pause.until)}


def _spare(values: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Leave out what a job lacks."""
    return values and {name: value for name, value in values.items() if value not in (None, [], {})}
