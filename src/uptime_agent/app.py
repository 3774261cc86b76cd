"""The agent, put together: a configuration becomes jobs of a scheduler whose events are shown."""

from __future__ import annotations

from collections.abc import Mapping
from socket import socket
from typing import Final

import anyio
from attrs import frozen

from scheduler import (
    AgentLost,
    Event,
    JobFinished,
    MissedReason,
    RunEnded,
    RunMissed,
    Scheduler,
    SchedulerStarted,
    ShardsMoved,
    StoreDown,
    StoreError,
    StoreTakenOver,
    StoreUp,
    tune_gc,
)
from timerqueue import Clock

from .checks import PUSH, Holdups, Resolver, Status
from .config import Config, Push, spoken_for, without_collections
from .heartbeat import OURS, Heart, StoreOutage, Vitals, heart_of
from .notify import TASK as NOTIFY, Delivery, Means, Outbox
from .probing import Probing
from .push import LIMIT as HANDED, MOST as MOST_HANDED, NotListening, Peers, Signals, listen, most_connections
from .quorum import duties_of, poll_of
from .relations import LIMIT as GROUPS, Answers, Elsewhere, SharedGroups, elsewhere_of
from .reload import Reload, Source, told_of
from .roster import Roster, Ways
from .show import Display, Monitor, View
from .signals import GRACE, attended
from .targets import Sooner, TargetStatus
from .text import Redactor

CRASH_FLOOR: Final = 10.0
"""Seconds for which a check that ran when its process died does not start again."""


SETTLED: Final = 0.2
"""Seconds after the start in which the scheduler finds what was due before it."""

EACH_CHANNEL: Final = "channel:*"
"""The limit of each channel: one message at a time."""


@frozen(kw_only=True)
class Plan:
    """How long to run. `once`: each check one time. `seconds`: stop after so many; None: when told to."""

    once: bool = False
    seconds: float | None = None


async def run(
    config: Config,
    display: Display,
    plan: Plan,
    clock: Clock,
    *,
    resolver: Resolver | None = None,
    source: Source | None = None,
    redactor: Redactor | None = None,
) -> int:
    """Run the checks until the plan is fulfilled or a signal comes.

    `source`: where the configuration comes from; it is followed while the agent runs. None: there is no file to follow.
    `redactor`: of the log too; it learns secrets that come with a new configuration.

    The exit code: 0; 1 if a second signal cut it off, or for `once` if something is not well, or a probe failed. Before
    anything has started it raises InvalidJob if a schedule has no start left, and StoreError if the store cannot be
    opened; after a clean end NotShown, if that came because nothing could be shown any more, and StoreTakenOver if it
    came because the store is another agent's now; NotListening if signals of push targets cannot come in.
    """
    redactor = Redactor() if redactor is None else redactor
    redactor.learn(config.secrets)
    ways = Ways(
        Resolver(config.hosts, reach=config.reach) if resolver is None else resolver, clock, redactor, Holdups(clock)
    )
    with without_collections():
        agent = _Agent(config, display, plan, ways, source)
    try:
        return await agent.run()
    except BaseExceptionGroup as group:  # of the task groups here and in the scheduler
        troubles, others = group.split(StoreError)
        if troubles is None or others is not None:
            raise
        raise _first(troubles) from None


def routes_of(config: Config) -> dict[str, tuple[str, ...] | None]:
    """The channels that are told of each target that is checked, of each group, and of our own store; None: all."""
    groups = {OURS: None, **{group.name: group.notify for group in config.groups}}
    members = dict.fromkeys(spoken_for(config.targets, config.groups), ())
    return groups | {target.name: target.notify for target in config.targets if target.is_enabled} | members


class _Agent:
    """One run: its scheduler, how its targets stand, and who shows that."""

    def __init__(self, config: Config, display: Display, plan: Plan, ways: Ways, source: Source | None) -> None:
        self._config = config
        self._plan = plan
        self._clock = ways.clock
        self._ways = ways
        store = config.store.make()
        self._has_past = store is not None
        self._scheduler = Scheduler(
            _places(config),
            {**config.limits.named, EACH_CHANNEL: 1, GROUPS: 1, HANDED: MOST_HANDED},
            clock=ways.clock,
            store=store,
            crash_floor=CRASH_FLOOR,
            retention=config.retention,
        )
        self._poll = None if plan.once else poll_of(store, ways.clock)
        elsewhere = None if plan.once else elsewhere_of(store, ways.redactor.clean)
        self._roster = Roster(
            self._scheduler, ways, config.network, is_once=plan.once, poll=self._poll, elsewhere=elsewhere
        )
        self._board = self._roster.board
        self._monitor = Monitor(display, self._scheduler.stop, ways.redactor.clean)
        self._outbox = Outbox(
            self._scheduler,
            config.channels,
            routes_of(config),
            config.rules,
            now=ways.clock.wall,
            say=self._monitor.notice,
            clean=ways.redactor.clean,
            unstored=OURS,
        )
        self._board.subscribe(self._outbox.hear)
        self._board.subscribe(self._monitor.hear)
        self._sooner = Sooner(self._scheduler, self._roster.statuses, self._roster.has_instants, rest=CRASH_FLOOR)
        self._board.subscribe(self._sooner.hear)
        self._answers = self._hear_those_above(elsewhere)
        self._board.subscribe(self._roster.groups.hear)
        self._shared_groups = self._roster.groups if isinstance(self._roster.groups, SharedGroups) else None
        self._outage = StoreOutage(self._board.tell, ways.clock, is_shared=config.store.fleet is not None)
        self._hear_the_scheduler()
        self._to_channels = Resolver(config.hosts)  # which `targets` does not bind: whom to tell is for the file to say
        means = Means(self._to_channels, ways.clock)
        self._delivery = Delivery(self._outbox, config.channels, means, ways.redactor.clean)
        self._scheduler.register(NOTIFY, self._delivery.run, without_store=True)
        self._roster.maintenance.plan(config.maintenance)
        self._roster.begin(config.targets)
        self._roster.groups.follow(config.groups, self._clock.wall())
        follows = source is not None and not plan.once
        peers = Peers(most_connections())
        self._signals = Signals(self._scheduler, self._monitor.notice, now=self._clock.wall, peers=peers)
        self._scheduler.listen(self._signals.listen, RunMissed, RunEnded, StoreDown, StoreUp)
        self._signals.follow(config.targets)
        self._reload = Reload(source, ways.clock, self._follow, self._monitor.notice) if follows and source else None
        self._probing = Probing(
            config,
            self._scheduler,
            ways.resolver,
            self._clock,
            self._resize,
            learn=ways.redactor.learn,
            say=self._monitor.notice,
            is_once=plan.once,
            duties=None if plan.once else duties_of(store),
        )
        if self._probing.places:
            self._resize()
        self._is_open = anyio.Event()
        self._taken_over: str | None = None
        """The agent that has the store now, in the words of the store."""

    def _heart(self) -> Heart | None:
        return heart_of(
            None if self._plan.once else self._config.heartbeat,
            Vitals(self._scheduler, self._outbox),
            resolver=self._to_channels,
            clock=self._clock,
            redactor=self._ways.redactor,
            say=self._monitor.notice,
        )

    def _hear_the_scheduler(self) -> None:
        """Have all that depends on the scheduler's events hear them, what is known of targets first."""
        self._scheduler.listen(self._board.listen)
        self._scheduler.listen(self._sooner.listen, RunEnded)
        if self._shared_groups is not None:
            self._scheduler.listen(self._shared_groups.listen, RunEnded)
        self._scheduler.listen(self._outbox.listen, RunEnded, JobFinished)
        self._scheduler.listen(self._outage.listen, StoreDown, StoreUp)
        self._scheduler.listen(self._look_around, ShardsMoved, AgentLost)
        self._scheduler.listen(self._listen)

    def _hear_those_above(self, elsewhere: Elsewhere | None) -> Answers | None:
        """Have targets checked sooner if those above them say so that other agents have, if any share the store."""
        if elsewhere is None:
            return None
        answers = Answers(elsewhere, self._roster.is_here, self._sooner, self._clock)
        self._board.subscribe(answers.hear)
        return answers

    async def run(self) -> int:
        plan, monitor = self._plan, self._monitor
        monitor.hold()
        with tune_gc():  # modules, targets and jobs are there by now, and nothing is due yet that could be late
            is_forced = await self._run_checks()
        if (report := self._probing.report) is not None and not plan.once:
            monitor.notice(f"metrics at the end: {report}")
        monitor.show(lambda display: display.stopped(self._board.summary()))
        if monitor.trouble is not None:
            raise monitor.trouble
        if self._taken_over is not None:
            raise StoreTakenOver(self._taken_over)
        return 1 if is_forced or (plan.once and not self._is_all_well()) else 0

    def _is_all_well(self) -> bool:
        asked = [each for each in self._roster.listed if each.kind != PUSH.name]
        return all(map(_is_well, asked)) and not self._probing.has_failed

    async def _run_checks(self) -> bool:
        """Run the scheduler, and beside it what belongs to it. True: a second signal cut it off."""
        plan, scheduler = self._plan, self._scheduler
        listener = None if self._config.push is None or plan.once else self._listening(self._config.push)
        async with attended(scheduler, self._monitor, self._clock, self._read_again) as (group, is_forced):
            group.start_soon(self._ways.holdups.watch)
            if self._reload is not None:
                group.start_soon(self._follow_file, self._reload)
            if listener is not None:
                group.start_soon(self._serve, listener)
            if self._poll is not None:
                group.start_soon(self._poll.run)
            if self._answers is not None:
                group.start_soon(self._answers.run)
            if self._has_past:
                group.start_soon(self._show_past)
            group.start_soon(self._outage.run)
            if (heart := self._heart()) is not None:
                group.start_soon(self._beat, heart)
            if plan.seconds is not None:
                group.start_soon(self._stop_after, plan.seconds)
            async with self._probing.running():
                await (scheduler.run_once() if plan.once else scheduler.run())
            for summary in self._probing.summaries() if plan.once else ():
                self._monitor.notice(summary)
        return bool(is_forced)

    def _listen(self, event: Event) -> None:
        if isinstance(event, SchedulerStarted):
            try:
                self._begin()
            finally:
                self._is_open.set()
        elif isinstance(event, RunMissed) and event.reason is MissedReason.NO_ROOM:
            self._roster.let_wait(event.job_id)
        elif isinstance(event, StoreDown) and event.is_taken_over:
            self._taken_over = event.error
            self._scheduler.stop(GRACE)

    def _look_around(self, _event: ShardsMoved | AgentLost) -> None:
        """Find out what is ours: other agents that share the store have what is not."""
        self._roster.look_around()
        self._sooner.make_up()
        self._outbox.look_around()
        self._signals.plan()
        if self._shared_groups is not None:
            self._shared_groups.look_around()

    def _begin(self) -> None:
        """Show what there is, once the store is open and read, and remove jobs whose targets are gone."""
        store = str(self._config.store) if self._has_past else None
        view = View(targets=self._roster.listed, scheduler=self._scheduler, now=self._clock.wall, store=store)
        self._monitor.begin(view)
        for warning in self._config.all_warnings:
            self._monitor.notice(warning)
        if self._plan.once and self._config.channels:
            later = ", before an agent runs without it" if self._has_past else ""
            self._monitor.notice(f"--once ends with its checks: no channel is told of what they find{later}")
        gone = self._roster.remove_others()
        if gone:
            names = ", ".join(gone)
            self._monitor.notice(f"no longer checked, because the configuration says so: {names}; their history stays")
        self._outbox.begin()
        if self._shared_groups is not None:
            self._shared_groups.begin()
        self._roster.begin_evenly()
        self._sooner.make_up()
        if not self._plan.once:  # then nobody listens, and each is asked at once
            self._signals.plan()

    # -- while it runs -------------------------------------------------------------------------------------------------

    def _read_again(self) -> None:
        if self._reload is None:
            self._monitor.notice("SIGHUP changes nothing: there is no configuration file to read again")
        else:
            self._reload.ask()

    async def _follow_file(self, reload: Reload) -> None:
        await self._is_open.wait()
        await reload.run()

    async def _follow(self, config: Config) -> None:
        """Go on with a new configuration, and say what it has changed."""
        before, self._config = self._config, config
        self._ways.redactor.learn(config.secrets)
        self._ways.resolver.follow(config.hosts, config.reach)
        self._to_channels.follow(config.hosts)
        if config.limits != before.limits or len(config.channels) != len(before.channels):
            self._resize(config.limits.now(before.limits))
        self._roster.maintenance.plan(config.maintenance)
        changes = await self._roster.follow(config.targets)
        servers = await self._probing.follow(config)
        self._roster.groups.follow(config.groups, self._clock.wall())
        self._signals.follow(config.targets)
        self._signals.plan()
        self._delivery.follow(config.channels)
        self._outbox.follow(config.channels, routes_of(config), config.rules)
        self._roster.groups.tell()
        for warning in config.all_warnings:
            if warning not in before.all_warnings:
                self._monitor.notice(warning)
        for text in told_of(changes, before, config, servers):
            self._monitor.notice(text)

    def _resize(self, limits: Mapping[str, float] | None = None) -> None:
        self._scheduler.resize(_places(self._config, self._probing.places), {} if limits is None else limits)

    async def _serve(self, listener: socket) -> None:
        """Take signals of push targets, once the store has been read: else they would be lost."""
        with listener:
            await self._is_open.wait()
            takes_get = self._config.push is not None and self._config.push.takes_get
            await self._signals.server(self._clock, takes_get=takes_get).serve(listener)

    def _listening(self, push: Push) -> socket:
        """Listen for signals. Another agent that has the store has the port too: then the store is what to tell of."""
        try:
            return listen(push.host, push.port)
        except NotListening:
            self._config.store.check_free()
            raise

    async def _beat(self, heart: Heart) -> None:
        """Report that we are well, once the store has been read."""
        await self._is_open.wait()
        await heart.run()

    async def _stop_after(self, seconds: float) -> None:
        await self._is_open.wait()
        await self._clock.sleep(seconds)
        self._scheduler.stop(GRACE)

    async def _show_past(self) -> None:
        """Show how the targets stood, and how much has been left out since."""
        await self._is_open.wait()
        await self._roster.recall.recall_all()
        await self._clock.sleep(SETTLED)
        self._board.tell_downtime()


def _places(config: Config, of_probes: int = 0) -> float:
    """How many tasks run at a time. A channel has a place of its own, and so has each probe, what judges groups of
    several agents, and each signal that one of these hands on: no check waits for one.
    """
    is_fleet = config.store.fleet is not None
    of_agents = is_fleet * (bool(config.groups) + MOST_HANDED * (config.push is not None))
    return config.limits.total + len(config.channels) + of_probes + of_agents


def _first(group: BaseExceptionGroup[StoreError]) -> StoreError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _is_well(target: TargetStatus) -> bool:
    return bool(target.checks_now) and target.status in (Status.UP, Status.DEGRADED)
