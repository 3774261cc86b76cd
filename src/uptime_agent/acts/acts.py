"""The verbs of operators."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from attrs import evolve

from scheduler import AlreadyStopped, AskedRun, Job, JobNotFound, Scheduler

from ..text import wording
from .act import Act, ActKind, Scope, act_of
from .asked import ActRefused, NoSuchName, actor_of, named, reason_of, scope_of, target_or_group, until_of
from .book import Known, Standing
from .jobs import TASK
from .keeping import ActDeps, ActKeeper, own_pause


class Acts:
    """Acts of people while the agent runs. Any node of a fleet takes any verb. On the event loop.

    Name one target, or else one group or tag. `actor` says who acts, `reason` why. An act replaces an earlier one of
    its kind and scope.

    Verbs raise ActRefused, which says what to do instead, and AlreadyStopped. Await `Scheduler.flush` to know that an
    act is stored.
    """

    def __init__(self, scheduler: Scheduler, keeper: ActKeeper, deps: ActDeps) -> None:
        self._scheduler = scheduler
        self._keeper = keeper
        self._deps = deps
        keeper.let_check(self._asked)
        scheduler.register(TASK, self.run, without_store=True)

    # -- what is asked -------------------------------------------------------------------------------------------------

    @property
    def known(self) -> Known:
        """The names that acts may name."""
        return self._keeper.known

    def acts_of(self, target: str) -> Standing:
        """The acts that hold now for a target or group."""
        target_or_group(self._keeper.known, target)
        return self._keeper.acts_of(target)

    def all(self) -> list[Act]:
        """All acts that hold now, the earliest first."""
        return self._keeper.all()

    # -- messages ------------------------------------------------------------------------------------------------------

    def acknowledge(self, target: str, *, reason: str, actor: str) -> Act:
        """Say "I know" of the open incident of a target or group: reminders rest until it is over."""
        scope = target_or_group(self._keeper.known, target)
        act = self._act(ActKind.ACKNOWLEDGE, scope, reason, actor, None)
        if not self._deps.is_here(target):  # the node that has it finds the incident
            return self._keeper.write(act)
        incident = self._deps.incident_of(target)
        if incident is None:
            msg = f"{scope} has no open incident: there is nothing to acknowledge"
            raise ActRefused(msg)
        return self._keeper.write(evolve(act, incident=incident.id))

    def end_acknowledgement(self, target: str, *, actor: str) -> Act:
        """Take an acknowledgement back: reminders come again."""
        return self._end(ActKind.ACKNOWLEDGE, target_or_group(self._keeper.known, target), actor)

    def silence(
        self,
        target: str | None = None,
        *,
        group: str | None = None,
        tag: str | None = None,
        until: datetime,
        reason: str,
        actor: str,
    ) -> Act:
        """Send no message about it until then. What is still open then is told once."""
        if until is None:
            msg = "until: a silence needs an end, so that nobody forgets it"
            raise ActRefused(msg)
        return self._keeper.write(self._act(ActKind.SILENCE, self._scope(target, group, tag), reason, actor, until))

    def end_silence(
        self, target: str | None = None, *, group: str | None = None, tag: str | None = None, actor: str
    ) -> Act:
        """End a silence now. What is still open is told."""
        return self._end(ActKind.SILENCE, self._scope_of_act(ActKind.SILENCE, target, group, tag), actor)

    # -- checks --------------------------------------------------------------------------------------------------------

    def pause(self, target: str, *, until: datetime | None = None, reason: str, actor: str) -> Act:
        """Check a target no more, until then or until `resume`."""
        act = self._act(ActKind.PAUSE, self._scope(target), reason, actor, until)
        self._job_of(target).pause(act.reason, until=until)
        return self._keeper.write(act)

    def resume(self, target: str, *, actor: str) -> None:
        """Check a paused target again, also after a pause by SQL or in code."""
        scope, by = self._scope(target), actor_of(actor)
        job = self._job_of(target)
        if not own_pause(job):
            msg = f"{scope} is not paused{'' if job.error is None else f', but {job.error}'}"
            raise ActRefused(msg)
        self._deps.say(f"{scope} was resumed by {wording.printable(by)}")
        job.resume()
        if (act := self._keeper.find(ActKind.PAUSE, scope)) is not None:
            self._keeper.drop(act)

    def begin_maintenance(
        self,
        target: str | None = None,
        *,
        group: str | None = None,
        tag: str | None = None,
        until: datetime | None = None,
        reason: str,
        actor: str,
    ) -> Act:
        """Leave out its checks, until then or until `end_maintenance`."""
        return self._keeper.write(self._act(ActKind.MAINTENANCE, self._scope(target, group, tag), reason, actor, until))

    def end_maintenance(
        self, target: str | None = None, *, group: str | None = None, tag: str | None = None, actor: str
    ) -> Act:
        """End a maintenance that was begun by hand. Windows of the file stay."""
        return self._end(ActKind.MAINTENANCE, self._scope_of_act(ActKind.MAINTENANCE, target, group, tag), actor)

    def check_now(self, target: str, *, actor: str) -> AskedRun:
        """Check a target at once. The result counts like any other. Await the answer for the run's end."""
        scope, by = self._scope(target), actor_of(actor)
        if (reason := self._deps.why_not_now(target)) is not None:
            msg = f"{scope} cannot be checked now: {reason}"
            raise ActRefused(msg)
        asked = self._job_of(target).run_now()
        self._deps.say(f"{scope} is checked now, for {wording.printable(by)}")
        return asked

    # ------------------------------------------------------------------------------------------------------------------

    async def run(self, values: Any) -> dict[str, Any]:
        """Run as an act begins or ends, so that history says so."""
        try:
            act = act_of(values)
        except ValueError as exc:
            return {"act": "unreadable", "error": str(exc)}
        if act.holds(self._deps.now()):
            return {"act": act.kind.value, "text": act.sentence}
        return {"act": "over", "text": f"over: {act.sentence}"}

    def _asked(self, act: Act) -> None:
        try:
            self.check_now(act.scope.name, actor=act.actor)
        except ActRefused as exc:
            self._deps.say(str(exc))
        except AlreadyStopped:
            pass

    def _act(self, kind: ActKind, scope: Scope, reason: str, actor: str, until: datetime | None) -> Act:
        now = self._deps.now()
        return Act(
            kind=kind,
            scope=scope,
            actor=actor_of(actor),
            reason=reason_of(reason),
            since=now,
            until=until_of(until, now),
        )

    def _end(self, kind: ActKind, scope: Scope, actor: str) -> Act:
        by = actor_of(actor)
        act = self._keeper.find(kind, scope)
        if act is None:
            others = [each for each in self._keeper.acts_of(scope.name) if each.kind is kind and each.scope != scope]
            instead = f", but {others[0].sentence}: end that" if others else ""
            msg = f"there is no {kind.value} of {scope} by hand{instead}"
            raise ActRefused(msg)
        self._deps.say(f"{wording.printable(by)} ends the {kind.value} of {scope}")
        self._keeper.drop(act)
        return act

    def _scope(self, target: str | None, group: str | None = None, tag: str | None = None) -> Scope:
        return scope_of(self._keeper.known, target, group, tag)

    def _scope_of_act(self, kind: ActKind, target: str | None, group: str | None, tag: str | None) -> Scope:
        """The scope of an act, also if nothing in the file has the name any more."""
        try:
            return self._scope(target, group, tag)
        except NoSuchName:
            scope = named(target, group, tag)
            if self._keeper.find(kind, scope) is None:
                raise
            return scope

    def _job_of(self, target: str) -> Job:
        try:
            return self._scheduler.get(target)
        except JobNotFound:
            msg = f"{wording.printable(target)} is not checked any more: its schedule has ended"
            raise ActRefused(msg) from None
