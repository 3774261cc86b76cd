"""The acts that hold: a book of them, which follows the jobs that store them.

    a verb, or a row by hand  -> the act's job is added; every node hears of it and enters it in its book
    its time is over          -> the job runs, and is gone
    the incident ends         -> its acknowledgement goes, in the transaction of the check's end

On the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from attrs import evolve, frozen

from scheduler import Job, JobAdded, JobChanged, JobFinished, JobNotFound, JobRemoved, JobState, Scheduler

from ..text import wording
from .act import PREFIX, Act, ActKind, Scope, ScopeKind
from .book import NOTHING, ActBook, Known, Standing, settled
from .jobs import ActJobs

OF_JOB: Final = "job:"
"""The scope of a job's own pause begins so."""

OfJob = JobAdded | JobChanged | JobRemoved | JobFinished


class OpenIncident(Protocol):
    """An incident, as an acknowledgement needs it. `began`: UTC seconds."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def began(self) -> float:
        """When it began."""


@frozen(kw_only=True)
class ActDeps:
    """The agent, as acts need it. `now`: UTC seconds. `say` hears sentences for people.

    `is_here`: whether this node knows the incident of a target or group. `why_not_now`: why a target cannot be checked
    at once.
    """

    now: Callable[[], float]
    say: Callable[[str], None]
    is_here: Callable[[str], bool] = lambda _name: True
    incident_of: Callable[[str], OpenIncident | None] = lambda _name: None
    why_not_now: Callable[[str], str | None] = lambda _name: None


class ActKeeper:
    """Keeps all acts, and says which hold."""

    def __init__(self, scheduler: Scheduler, deps: ActDeps) -> None:
        self._scheduler = scheduler
        self._deps = deps
        self._jobs = ActJobs(scheduler)
        self._book = ActBook()
        self._subscribers: list[Callable[[], None]] = []
        self._make_check: Callable[[Act], None] = lambda _act: None
        self._well: set[str] = set()
        """Targets that were well at their last check, and whose acknowledgement is not ended yet."""

    # -- what is asked -------------------------------------------------------------------------------------------------

    @property
    def known(self) -> Known:
        """The names that acts may name."""
        return self._book.known

    def find(self, kind: ActKind, scope: Scope) -> Act | None:
        """The act of that kind and scope, if it holds."""
        act = self._book.find(kind, scope)
        return act if act is not None and act.holds(self._deps.now()) else None

    def acts_of(self, name: str) -> Standing:
        """The acts that hold now for a target or group."""
        book = self._book
        if not len(book):
            return NOTHING
        now = self._deps.now()
        return Standing(
            acknowledged=book.of_target(ActKind.ACKNOWLEDGE, name, now),
            silenced=book.holding(ActKind.SILENCE, name, now),
            paused=self._pause_of(name),
            in_maintenance=book.holding(ActKind.MAINTENANCE, name, now),
        )

    def all(self) -> list[Act]:
        """All acts that hold now, the earliest first."""
        now = self._deps.now()
        return sorted((act for act in self._book if act.holds(now)), key=lambda act: (act.since, act.id))

    def maintenance_at(self, target: str, instant: float) -> str | None:
        """Who has a target in maintenance at an instant (UTC seconds), and why; or None."""
        act = self._book.holding(ActKind.MAINTENANCE, target, instant)
        return None if act is None else f"by {act.actor}: {act.reason}"

    def _pause_of(self, name: str) -> Act | None:
        """A pause that was ended or replaced otherwise is none of ours."""
        act = self._book.of_target(ActKind.PAUSE, name, self._deps.now())
        reason = None if act is None else self._reason_of_pause(name)
        return act if act is not None and act.reason == reason else None

    def _reason_of_pause(self, name: str) -> str | None:
        try:
            job = self._scheduler.get(name)
        except JobNotFound:  # its schedule has ended
            return None
        return next((pause.reason for pause in job.pauses if pause.scope.startswith(OF_JOB)), None)

    # -- what is done --------------------------------------------------------------------------------------------------

    def write(self, act: Act) -> Act:
        """Store an act. Raises AlreadyStopped."""
        before = self._book.find(act.kind, act.scope)
        self._enter(act)  # its job's own news are none then
        try:
            self._jobs.keep(act)
        except BaseException:
            self._restore(act, before)
            raise
        if self._jobs.is_ours(act.id):
            self._jobs.note(act.id)
        return act

    def drop(self, act: Act) -> None:
        """End an act."""
        self._jobs.end(act.id)
        self._gone(act.id)

    # -- what is heard -------------------------------------------------------------------------------------------------

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call `changed` after acts have changed."""
        self._subscribers.append(changed)

    def let_check(self, make: Callable[[Act], None]) -> None:
        """Call `make` for checks that another process asks for."""
        self._make_check = make

    def follow(self, known: Known) -> None:
        """Know these names. Acts of removed targets and groups end."""
        before, self._book.known = self._book.known, known
        for act in self._book:
            name, kind = act.scope.name, act.scope.kind
            was = (kind is ScopeKind.TARGET and name in before.tags) or (
                kind is ScopeKind.GROUP and name in before.groups
            )
            if was and not _is_in(known, act.scope) and self._jobs.is_ours(act.id):
                self.drop(act)
        self._tell()

    def begin(self) -> None:
        """Take up stored acts, once the store was read."""
        for job in list(self._jobs.all()):
            act = self._read(job.id)
            if act is not None and act.kind is ActKind.CHECK and self._jobs.is_ours(act.id):
                self._jobs.end(act.id)  # nobody waits for it any more
        for act in self._book:
            is_known = _is_in(self.known, act.scope)
            is_over = is_known and act.kind is ActKind.PAUSE and self._pause_of(act.scope.name) is None
            if (is_over or (not is_known and self._has_left(act.scope))) and self._jobs.is_ours(act.id):
                self.drop(act)

    def listen(self, event: OfJob) -> None:
        """Take a change of an act's job, or the end of a target's pause."""
        if not event.job_id.startswith(PREFIX):
            if isinstance(event, JobChanged) and event.state is not JobState.DISABLED and len(self._book):
                self._resumed(event.job_id)
        elif isinstance(event, (JobAdded, JobChanged)):
            act = self._read(event.job_id)
            if act is not None:
                self._take(act, is_new=isinstance(event, JobAdded))
        else:
            self._gone(event.job_id)

    def stands(self, name: str, incident: OpenIncident | None) -> None:
        """Take how a target or group stands after a check.

        `closed` hears of its recovery, but later: messages of the end name the acknowledgement.
        """
        act = self._book.of_target(ActKind.ACKNOWLEDGE, name, self._deps.now()) if len(self._book) else None
        if act is None:
            self._well.discard(name)
        elif incident is None and act.incident is not None and name not in self._well:
            self._well.add(name)
        else:
            self._settle(act, incident)

    def closed(self, name: str, incident: OpenIncident) -> None:
        """End the acknowledgement of an incident that has ended."""
        act = self._book.of_target(ActKind.ACKNOWLEDGE, name, self._deps.now())
        if act is not None and act.incident in (None, incident.id):
            self.drop(act)

    # -- one act -------------------------------------------------------------------------------------------------------

    def _take(self, act: Act, *, is_new: bool) -> None:
        """Take an act that was written elsewhere."""
        is_ours = self._jobs.is_ours(act.id)
        if act.kind is ActKind.CHECK:
            if is_ours:
                self._jobs.end(act.id)
                self._make_check(act)
            return
        if act.kind is ActKind.ACKNOWLEDGE and self._deps.is_here(act.scope.name):
            self._settle(act, self._deps.incident_of(act.scope.name))
        if is_new and is_ours:
            self._jobs.note(act.id)

    def _read(self, id: str) -> Act | None:
        """Enter a stored act. Returns it if it is news."""
        try:
            act = self._jobs.read(id)
        except ValueError as exc:
            self._deps.say(f"{wording.printable(id)} holds no act and changes nothing: {exc}")
            return None
        if act is None or act.kind is ActKind.CHECK:
            return act
        if not act.holds(self._deps.now()):
            self._jobs.end_stuck(id)
            return None
        return act if self._enter(act) else None

    def _enter(self, act: Act) -> bool:
        before = self._book.find(act.kind, act.scope)
        if not self._book.put(act):
            return False
        if before is None or evolve(before, incident=act.incident) != act:
            self._deps.say(act.sentence)
        self._tell()
        return True

    def _restore(self, act: Act, before: Act | None) -> None:
        self._book.drop(act.id)
        if before is not None:
            self._book.put(before)
        self._tell()

    def _gone(self, id: str) -> None:
        act = self._book.drop(id)
        if act is not None:
            self._well.discard(act.scope.name)
            self._deps.say(f"over: {act.sentence}")
            self._tell()

    def _settle(self, act: Act, incident: OpenIncident | None) -> None:
        """End an acknowledgement whose incident is over, or name the incident that it is of."""
        stays = settled(act, None if incident is None else incident.id, 0.0 if incident is None else incident.began)
        if stays is None:
            self.drop(act)
        elif stays != act:
            self._enter(stays)
            self._jobs.keep(stays)

    def _resumed(self, name: str) -> None:
        act = self._book.find(ActKind.PAUSE, Scope(ScopeKind.TARGET, name))
        if act is not None and self._reason_of_pause(name) is None and self._jobs.is_ours(act.id):
            self.drop(act)

    def _has_left(self, scope: Scope) -> bool:
        """Whether it is a target that nobody checks any more. Another file may have a group of that name."""
        if scope.kind is not ScopeKind.TARGET:
            return False
        try:
            self._scheduler.get(scope.name)
        except JobNotFound:
            return True
        return False

    def _tell(self) -> None:
        for changed in self._subscribers:
            changed()


def _is_in(known: Known, scope: Scope) -> bool:
    match scope.kind:
        case ScopeKind.TARGET:
            return scope.name in known.tags
        case ScopeKind.GROUP:
            return scope.name in known.groups
        case ScopeKind.TAG:
            return True


def own_pause(job: Job) -> bool:
    """Whether a job itself is paused, not only its tag or all jobs."""
    return any(pause.scope.startswith(OF_JOB) for pause in job.pauses)
