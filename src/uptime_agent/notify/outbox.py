"""The outbox: each message is a stored one-shot job, and waiting messages tell which incidents are open.

    Opened -> TRIGGER, due at once
              RESOLVED, due in a hundred years: while it waits, its incident is open
              REMINDER 1, due when its time has come
    Closed -> the reminder goes; RESOLVED is due once TRIGGER is settled

All this is in the transaction of the check's end: a crash leaves both or neither. Settled: taken, expired, or without a
channel. Lives on the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from logging import getLogger
from typing import Final

import anyio
from attrs import evolve

from scheduler import ClockJumped, JobFinished, Outcome, RunEnded, Scheduler

from ..acts import ActsOf, no_acts
from ..standing import Checked, CheckedAgain, Closed, GroupRecalled, Incident, News, NotChecked, Opened, Remembered
from ..text import wording
from .arrivals import Arrivals
from .backlog import Backlog
from .channels import Message, MessageKind
from .digests import Digests
from .entries import NEVER, Entries, OutboxEntry, instant_of, waits_to_be_told
from .message_jobs import MessageJobs
from .pace import PaceWindow, Rules
from .reminders import Reminders, acknowledgement
from .silences import Silences

logger = getLogger(__name__)

RETRY_S: Final = 1.0
"""Seconds after a refused start."""

RESTED: Final = timedelta(seconds=60)
"""Then a message that was in progress at three crashes is tried again."""

DELIVERED: Final = "delivered"
NEEDLESS: Final = "needless"
SILENCED: Final = "silenced"
NOT_YET: Final = "waits for its turn"
"""The message is still unsent."""


class Outbox:
    """Unsettled messages and open incidents.

    `routes`: each target's channels; None: all. `say` hears about messages. `clean` masks secrets. `now`: UTC seconds.
    `unstored`: our own name, whose messages are not stored. `acts_of`: what people did to targets.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        channels: Collection[str],
        routes: Mapping[str, Collection[str] | None],
        rules: Rules,
        *,
        now: Callable[[], float],
        say: Callable[[str], None],
        clean: Callable[[str], str] = str,
        unstored: str | None = None,
        acts_of: ActsOf = no_acts,
    ) -> None:
        self.rules = rules
        self._channels = channels
        self._routes = routes
        self._now = now
        self._say = say
        self._clean = clean
        self._acts_of = acts_of
        self._entries = Entries(acts_of)
        self._jobs = MessageJobs(scheduler, self._entries, now, unstored)
        self._reminders = Reminders(scheduler, self._entries, self._jobs, acts_of, now=now, rules=lambda: self.rules)
        self._silences = Silences(self._entries, self._jobs, self._reminders, now=now, rules=lambda: self.rules)
        self._digests = Digests()
        self._arrivals = Arrivals(scheduler, self._entries, self._digests, say)
        self._windows = {name: PaceWindow(rules.digest) for name in channels}
        self._failing: dict[str, str] = {}
        """Errors of channels that refused their last message."""
        self._backlog = Backlog(self._entries, self._failing)
        self._early: list[News] | None = []
        """News before `begin`: unread jobs may have told them."""
        self._begun = anyio.Event()
        self._compared: set[str] = set()
        """Targets whose earlier incidents were compared."""

    # -- what is heard -------------------------------------------------------------------------------------------------

    def hear(self, news: News) -> None:
        """Take news. Errors are only logged."""
        if self._early is not None:
            self._early.append(news)
            return
        try:
            self._hear(news)
        except Exception:
            logger.exception("a message could not be put into the outbox")

    def _hear(self, news: News) -> None:
        match news:
            case Opened(incident):
                self._opened(incident)
            case Closed():
                self._closed(news)
            case Checked(target) | Remembered(target):
                if target.name not in self._compared:
                    self._compared.add(target.name)
                    self._compare(target.name, target.incident, target.state_since)
                if target.incident is not None:
                    self._say_as_it_stands(target.incident)
            case GroupRecalled(name, incident, since):
                self._compare(name, incident, since)
            case NotChecked(name):
                self._reminders.rest(name)
            case CheckedAgain(name):
                self._reminders.go_on(name)
            case ClockJumped():
                self._start_ready(self._entries.all())  # messages whose time is further away now
            case _:
                pass

    def listen(self, event: RunEnded | JobFinished) -> None:
        """Take a run's end, which settles or retries a message; or a job's."""
        entry = self._entries.of_job(event.job_id)
        if entry is None:
            self._digests.end(event.job_id)
        elif isinstance(event, JobFinished):
            self._revive(entry)
        elif event.outcome is Outcome.SUCCEEDED:
            result = event.results[-1] if event.results else None
            how = result.get("delivery") if isinstance(result, Mapping) else None
            if how != NOT_YET:
                self._settled(entry, str(how))
                entry.job.remove()  # it may have a start left, in a hundred years, and would be taken for unsettled
                self._digests.mark(result.get("key") if isinstance(result, Mapping) else None)
        elif event.outcome in (Outcome.FAILED, Outcome.TIMED_OUT):
            self._failed(entry.message.channel, event.error or "")

    def _revive(self, entry: OutboxEntry) -> None:
        """Replace a job that ended unsettled.

        A clock was set back: its last start never ran, as that instant has a record.
        """
        self._entries.discard(entry)
        message = entry.message
        is_due = message.kind is not MessageKind.RESOLVED or message.ended is not None
        self._jobs.add(message, self._now() + RETRY_S if is_due else None)

    def begin(self) -> None:
        """Take up earlier messages, once the store was read; then early news."""
        self.look_around()
        waiting = sum(self._entries.is_ready(entry, self._now()) for entry in self._entries.all())
        if waiting:
            self._say(f"{wording.count(waiting, 'message')} of an earlier run not delivered yet: trying again")
        early, self._early = self._early or [], None
        for news in early:
            self.hear(news)
        self._begun.set()

    def look_around(self) -> None:
        """Take up our messages, and drop other nodes'."""
        self._compared.clear()
        for entry in self._arrivals.take_up():
            self._go_on(entry)  # now that all are there: an end waits for its beginning
        for entry in self._arrivals.sent():
            self._jobs.start_soon(entry)
        self._silences.look()

    def acts_changed(self) -> None:
        """Take what people did: silences begin and end."""
        if self._early is None:
            self._silences.look()

    def is_coming(self, key: str) -> bool:
        """Whether another node left us a message that is not here yet. Then its job starts again."""
        return self._arrivals.is_coming(key, instant_of(self._now() + RETRY_S))

    async def has_begun(self) -> None:
        """Wait for `begin`."""
        await self._begun.wait()

    def follow(self, channels: Collection[str], routes: Mapping[str, Collection[str] | None], rules: Rules) -> None:
        """Use these. New channels hear of open incidents at their next checks."""
        windows = self._windows if rules.digest == self.rules.digest else {}
        self._windows = {name: windows.get(name) or PaceWindow(rules.digest) for name in channels}
        self._channels, self._routes, self.rules = channels, routes, rules
        self._compared.clear()
        for entry in self._entries.all():
            self._go_on(entry)
        self._silences.look()

    # -- what is asked -------------------------------------------------------------------------------------------------

    def stuck(self) -> dict[str, bool]:
        """Whether each channel took nothing, though a message waited."""
        return self._backlog.stuck(self._channels, self._now())

    def find(self, key: str) -> Message | None:
        """The unsettled message of that key."""
        entry = self._entries.find(key)
        return None if entry is None else entry.message

    def wait(self, key: str) -> float | None:
        """Seconds until it may be sent. None: another event decides."""
        entry = self._entries.find(key)
        return None if entry is None else self._entries.wait(entry, self._now())

    def turn_of(self, key: str) -> float | None:
        """The turn that an unsettled message has taken, in monotonic seconds."""
        entry = self._entries.find(key)
        return None if entry is None else entry.goes_at

    def keep_turn(self, key: str, turn: float | None) -> None:
        """Keep a message's turn until it is settled. None: it is over."""
        if (entry := self._entries.find(key)) is not None:
            entry.goes_at = turn

    def is_needless(self, reminder: Message) -> bool:
        """See `Reminders`."""
        return self._reminders.is_needless(reminder)

    def ready(self, channel: str) -> list[Message]:
        """Sendable messages, except regular reminders, which go alone."""
        waiting = [each for each in self._entries.of_channel(channel) if self._entries.is_ready(each, self._now())]
        return [each.message for each in waiting if not each.message.is_silent and self._may_go_along(each.message)]

    def _may_go_along(self, message: Message) -> bool:
        is_held = message.held_until is not None
        return message.kind is not MessageKind.REMINDER or (is_held and not self.is_needless(message))

    def settled_with(self, key: str) -> dict[str, str]:
        """How a settled message went."""
        digest = self._digests.digest_of(key)
        return {"delivery": "settled before"} if digest is None else {"delivery": DELIVERED, "in": digest}

    def postpone(self, key: str, seconds: float | None) -> None:
        """Restart the job after `seconds`; None: the outbox decides."""
        if (entry := self._entries.find(key)) is not None:
            later = NEVER if seconds is None else timedelta(seconds=seconds)
            entry.job.set_next_start(instant_of(self._now()) + later)

    def sent_together(self, messages: Collection[Message], key: str) -> None:
        """Settle a digest's messages. Their jobs record it."""
        for message in messages:
            if (entry := self._entries.find(message.key)) is not None:
                self._digests.put(entry, key)
                self._settled(entry, DELIVERED)
                self._jobs.start_soon(entry)

    # -- incidents -----------------------------------------------------------------------------------------------------

    def _opened(self, incident: Incident) -> None:
        for other in self._entries.open_of(incident.target):
            if other.message.incident != incident.id:
                self._close(other, self._now(), None)
        route = self._routes.get(incident.target)
        for channel in self._channels if route is None else route:
            self._open(incident, channel)

    def _open(self, incident: Incident, channel: str) -> None:
        now = self._now()
        message = Message(
            kind=MessageKind.TRIGGER,
            channel=channel,
            incident=incident.id,
            target=incident.target,
            status=incident.status if isinstance(incident.status, str) else incident.status.value,
            began=incident.began,
            at=now,
            error=None if incident.error is None else self._clean(incident.error),
            cause=incident.cause,
            members=incident.members,
        )
        resolved = evolve(message, kind=MessageKind.RESOLVED)
        if self._entries.find(resolved.key) is not None or self._arrivals.may_come(resolved.key):
            return
        self._jobs.add(resolved, None)
        until = self._hold_until(message, now)
        self._jobs.add(evolve(message, held_until=until), now if until is None else until)
        self._reminders.plan(message, 1)

    def _hold_until(self, message: Message, now: float) -> float | None:
        until, window = self._entries.silent_until(message.target, now), self._windows.get(message.channel)
        return until if until is not None or window is None else window.hold_until(now)

    def _say_as_it_stands(self, incident: Incident) -> None:
        """Update waiting messages: down, or flapping."""
        status = incident.status if isinstance(incident.status, str) else incident.status.value
        for entry in self._entries.of_target(incident.target):
            message = entry.message
            is_new = message.incident == incident.id and message.status != status
            if is_new and entry.kind is not MessageKind.TRIGGER:
                self._jobs.become(entry, evolve(message, status=status))

    def _closed(self, news: Closed) -> None:
        for entry in self._entries.open_of(news.incident.target):
            if entry.message.incident == news.incident.id:
                self._close(entry, news.ended, news.error, is_gone=news.is_gone)

    def _close(self, entry: OutboxEntry, ended: float, still: str | None, *, is_gone: bool = False) -> None:
        """Tell an incident's end, once its beginning is settled."""
        message, now = entry.message, self._now()
        self._reminders.end(message)
        until, known = self._hold_until(message, now), acknowledgement(self._acts_of, message)
        trigger, is_silent = self._entries.trigger_of(message), False
        if trigger is not None and self._entries.silent_until(message.target, now) is not None:
            is_silent = True
            self._jobs.become(trigger, evolve(trigger.message, is_silent=True))
            self._jobs.let_go(trigger, now)
        said = None if still is None else self._clean(still)
        message = evolve(
            message, at=now, ended=ended, still=said, is_gone=is_gone, held_until=until, is_silent=is_silent
        )
        if known is not None:
            message = evolve(message, acknowledged_by=known.actor, acknowledged_for=known.reason)
        self._jobs.become(entry, message)
        if trigger is None:
            self._jobs.let_go(entry, now if until is None else until)

    def _compare(self, target: str, incident: Incident | None, since: float | None) -> None:
        """Tell what an earlier process or a new channel missed. `since`: UTC seconds."""
        for entry in self._entries.open_of(target):
            if incident is None or entry.message.incident != incident.id:
                self._close(entry, self._now() if since is None else since, None)
        if incident is not None:
            self._opened(incident)
            for entry in self._entries.open_of(target):
                self._reminders.plan_again(entry.message)

    def _start_ready(self, entries: Iterable[OutboxEntry]) -> None:
        for entry in entries:
            if self._entries.is_ready(entry, self._now()):
                self._jobs.start_soon(entry)

    # -- what became of them -------------------------------------------------------------------------------------------

    def _settled(self, entry: OutboxEntry, how: str) -> None:
        self._entries.discard(entry)
        message = entry.message
        match entry.kind:
            case MessageKind.TRIGGER:
                self._trigger_settled(message, was_told=how == DELIVERED)
            case MessageKind.REMINDER:
                self._reminders.settled(message)
            case MessageKind.RESOLVED | MessageKind.TEST:
                pass
        if how == DELIVERED:
            self._works_again(message.channel)
        if how != NEEDLESS:
            goes_on = entry.kind is MessageKind.RESOLVED and message.ended is None
            what = f"how the incident of {message.target} ends" if goes_on else message.text
            said = f"told {message.channel}" if how == DELIVERED else f"not told {message.channel}, {how}"
            self._say(f"{said}: {what}")

    def _trigger_settled(self, message: Message, *, was_told: bool) -> None:
        """Release RESOLVED, which says if the alarm was never delivered."""
        resolved = self._entries.find(evolve(message, kind=MessageKind.RESOLVED).key)
        if resolved is None:
            return
        if not was_told or resolved.message.is_silent:
            is_silent = resolved.message.is_silent and not was_told  # it was on its way as the silence began
            self._jobs.become(resolved, evolve(resolved.message, was_told=was_told, is_silent=is_silent))
        if resolved.message.ended is not None:
            held_until = 0.0 if resolved.message.is_silent else resolved.message.held_until or 0.0
            self._jobs.let_go(resolved, max(self._now(), held_until))

    def _failed(self, channel: str, error: str) -> None:
        if channel not in self._failing:
            said = error.partition("Undelivered: ")[2] or error
            self._say(f"channel {channel}: {said}; messages are kept and tried again")
        self._failing[channel] = error

    def _works_again(self, channel: str) -> None:
        self._backlog.taken(channel)
        if self._failing.pop(channel, None) is not None:
            self._start_ready(self._entries.of_channel(channel))

    # -- after a restart -----------------------------------------------------------------------------------------------

    def _go_on(self, entry: OutboxEntry) -> None:
        """Continue under the present configuration."""
        message, job, now = entry.message, entry.job, self._now()
        if job.error is not None and job.error.startswith("quarantined"):
            job.resume()
            job.set_next_start(instant_of(now) + RESTED)
        elif message.channel not in self._channels:
            self._jobs.let_go(entry, now)
        elif entry.kind is MessageKind.RESOLVED and message.ended is None and message.target not in self._routes:
            self._close(entry, now, None, is_gone=True)
        elif self._entries.is_ready(entry, now) and waits_to_be_told(job, now):
            self._jobs.let_go(entry, now)
