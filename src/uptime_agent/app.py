"""The life of an agent."""

from __future__ import annotations

from socket import socket
from typing import TYPE_CHECKING, Final

import anyio
from attrs import frozen

from scheduler import (
    AgentLost,
    Event,
    MissedReason,
    RunMissed,
    SchedulerStarted,
    ShardsMoved,
    StoreDown,
    StoreError,
    StoreTakenOver,
    tune_gc,
)
from timerqueue import Clock

from .assembly import Parts, assembled, routes_of
from .checks import PUSH, Holdups, Resolver, Status
from .config import Api, Config, Push, without_collections
from .heartbeat import Heart
from .reload import Reload, Source, told_of
from .show import Display, Screen
from .signals import GRACE, attended
from .standing import TargetStatus
from .targets import CheckDeps, known_of
from .text import Redactor
from .web import NotListening, listen

if TYPE_CHECKING:
    from .api import ApiServer

SETTLED: Final = 0.2
"""Seconds in which the scheduler finds earlier missed ticks."""


@frozen(kw_only=True)
class RunPlan:
    """How long to run: each check `once`, or `seconds`; None: until told to stop."""

    once: bool = False
    seconds: float | None = None


async def run(
    config: Config,
    display: Display,
    plan: RunPlan,
    clock: Clock,
    *,
    resolver: Resolver | None = None,
    source: Source | None = None,
    redactor: Redactor | None = None,
) -> int:
    """Run the checks until the plan is fulfilled or a signal comes.

    Returns 1 after a second signal, or with `once` if a target is not well or a probe failed; else 0. `source` is
    followed; `redactor` learns new secrets.

    Raises before anything starts: InvalidJob if a schedule has no start left, StoreError, NotListening if push signals
    cannot come in. Raises after a clean end: NotShown if output became impossible, StoreTakenOver.
    """
    redactor = Redactor() if redactor is None else redactor
    redactor.learn(config.secrets)
    ways = CheckDeps(
        Resolver(config.hosts, reach=config.reach) if resolver is None else resolver, clock, redactor, Holdups(clock)
    )
    with without_collections():
        agent = _Agent(config, assembled(config, display, ways, is_once=plan.once), plan, source)
    try:
        return await agent.run()
    except BaseExceptionGroup as group:  # of the task groups here and in the scheduler
        troubles, others = group.split(StoreError)
        if troubles is None or others is not None:
            raise
        raise _first(troubles) from None


class _Agent:
    def __init__(self, config: Config, parts: Parts, plan: RunPlan, source: Source | None) -> None:
        self._config = config
        self._parts = parts
        self._plan = plan
        self._clock = parts.ways.clock
        self._scheduler = parts.scheduler
        self._monitor = parts.monitor
        self._checking = parts.checking
        self._scheduler.listen(self._look_around, ShardsMoved, AgentLost)
        self._scheduler.listen(self._listen)
        self._checking.maintenance.plan(config.maintenance)
        self._checking.targets.begin(config.targets)
        self._checking.groups.follow(config.groups, self._clock.wall())
        self._checking.keeper.follow(known_of(config.targets, config.groups))
        parts.signals.follow(config.targets)
        follows = source is not None and not plan.once
        self._reload = Reload(source, self._clock, self._follow, parts.monitor.notice) if follows and source else None
        self._is_open = anyio.Event()
        self._taken_over: str | None = None

    async def run(self) -> int:
        plan, monitor = self._plan, self._monitor
        monitor.hold()
        with tune_gc():  # modules, targets and jobs are there by now, and nothing is due yet that could be late
            is_forced = await self._run_checks()
        if (report := self._parts.probing.report) is not None and not plan.once:
            monitor.notice(f"metrics at the end: {report}")
        monitor.show(lambda display: display.stopped(self._checking.board.summary()))
        if monitor.trouble is not None:
            raise monitor.trouble
        if self._taken_over is not None:
            raise StoreTakenOver(self._taken_over)
        return 1 if is_forced or (plan.once and not self._is_all_well()) else 0

    def _is_all_well(self) -> bool:
        asked = [each for each in self._checking.targets.listed if each.kind != PUSH.name]
        return all(map(_is_well, asked)) and not self._parts.probing.has_failed

    async def _run_checks(self) -> bool:
        """True: a second signal cut them off."""
        plan, scheduler, parts = self._plan, self._scheduler, self._parts
        listener, api = self._open()
        async with attended(scheduler, self._monitor, self._clock, self._read_again) as (group, is_forced):
            group.start_soon(parts.ways.holdups.watch)
            if self._reload is not None:
                group.start_soon(self._follow_file, self._reload)
            if listener is not None:
                group.start_soon(self._serve, listener)
            if api is not None:
                group.start_soon(api.run)
            if parts.poll is not None:
                group.start_soon(parts.poll.run)
            if parts.answers is not None:
                group.start_soon(parts.answers.run)
            if parts.has_past:
                group.start_soon(self._show_past)
            group.start_soon(parts.outage.run)
            if parts.heart is not None:
                group.start_soon(self._beat, parts.heart)
            if plan.seconds is not None:
                group.start_soon(self._stop_after, plan.seconds)
            async with parts.probing.running():
                await (scheduler.run_once() if plan.once else scheduler.run())
            for summary in parts.probing.summaries() if plan.once else ():
                self._monitor.notice(summary)
        return bool(is_forced)

    def _listen(self, event: Event) -> None:
        if isinstance(event, SchedulerStarted):
            try:
                self._begin()
            finally:
                self._is_open.set()
        elif isinstance(event, RunMissed) and event.reason is MissedReason.NO_ROOM:
            self._checking.targets.let_wait(event.job_id)
        elif isinstance(event, StoreDown) and event.is_taken_over:
            self._taken_over = event.error
            self._scheduler.stop(GRACE)

    def _look_around(self, _event: ShardsMoved | AgentLost) -> None:
        self._checking.here.look_around()
        self._parts.recheck.make_up()
        self._parts.outbox.look_around()
        self._parts.signals.plan()
        if self._checking.shared_groups is not None:
            self._checking.shared_groups.look_around()

    def _begin(self) -> None:
        config, parts, checking, say = self._config, self._parts, self._checking, self._monitor.notice
        store = str(config.store) if parts.has_past else None
        view = Screen(
            targets=checking.targets.listed,
            scheduler=self._scheduler,
            now=self._clock.wall,
            store=store,
            acts=checking.acts,
        )
        self._monitor.begin(view)
        for warning in config.all_warnings:
            say(warning)
        if self._plan.once and config.channels:
            later = ", before an agent runs without it" if parts.has_past else ""
            say(f"--once ends with its checks: no channel is told of what they find{later}")
        if gone := checking.targets.remove_others():
            say(f"no longer checked, because the configuration says so: {', '.join(gone)}; their history stays")
        checking.keeper.begin()
        parts.outbox.begin()
        if checking.shared_groups is not None:
            checking.shared_groups.begin()
        checking.targets.begin_evenly()
        parts.recheck.make_up()
        if not self._plan.once:  # then no port listens, and each is asked at once
            parts.signals.plan()

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
        before, self._config = self._config, config
        parts, checking = self._parts, self._checking
        parts.ways.redactor.learn(config.secrets)
        parts.ways.resolver.follow(config.hosts, config.reach)
        parts.to_channels.follow(config.hosts)
        parts.room.follow(config)
        checking.maintenance.plan(config.maintenance)
        changes = await checking.targets.follow(config.targets)
        servers = await parts.probing.follow(config)
        checking.groups.follow(config.groups, self._clock.wall())
        checking.keeper.follow(known_of(config.targets, config.groups))
        parts.signals.follow(config.targets)
        parts.signals.plan()
        parts.delivery.follow(config.channels)
        parts.outbox.follow(config.channels, routes_of(config), config.rules)
        checking.groups.tell()
        for warning in config.all_warnings:
            if warning not in before.all_warnings:
                self._monitor.notice(warning)
        for text in told_of(changes, before, config, servers):
            self._monitor.notice(text)

    async def _serve(self, listener: socket) -> None:
        """Wait for the store: earlier signals would be lost."""
        with listener:
            await self._is_open.wait()
            takes_get = self._config.push is not None and self._config.push.takes_get
            await self._parts.signals.server(self._clock, takes_get=takes_get).serve(listener)

    def _open(self) -> tuple[socket | None, ApiServer | None]:
        """Listen for signals and at the control API. Raises NotListening."""
        config, is_once = self._config, self._plan.once
        listener = None if config.push is None or is_once else self._listening(config.push)
        try:
            return listener, None if config.api is None or is_once else self._served(config.api)
        except BaseException:
            if listener is not None:
                listener.close()
            raise

    def _listening(self, push: Push) -> socket:
        """If another agent has the port and the store, the error is about the store."""
        try:
            return listen(push.host, push.port, "signals")
        except NotListening:
            self._config.store.check_free()
            raise

    def _served(self, settings: Api) -> ApiServer:
        """Raises NotListening, or about the store as above."""
        from .api import About, ApiServer, Inside  # noqa: PLC0415 - it needs starlette

        now, it, say = self._clock.wall(), self._checking, self._monitor.notice
        about = About(file=self._config.file, began=now)
        inside = Inside(about, it.acts, it.targets.listed, it.groups.incident, it.here.is_here)
        place_of = lambda name: self._config.place_of(name)  # noqa: E731, PLW0108 - of the file as it is then
        api = ApiServer(settings, self._scheduler, self._clock, say, inside=inside, place_of=place_of)
        try:
            api.open()
        except NotListening:
            self._config.store.check_free()
            raise
        return api

    async def _beat(self, heart: Heart) -> None:
        await self._is_open.wait()
        await heart.run()

    async def _stop_after(self, seconds: float) -> None:
        await self._is_open.wait()
        await self._clock.sleep(seconds)
        self._scheduler.stop(GRACE)

    async def _show_past(self) -> None:
        await self._is_open.wait()
        await self._checking.recall.recall_all()
        await self._clock.sleep(SETTLED)
        self._checking.board.tell_downtime()


def _first(group: BaseExceptionGroup[StoreError]) -> StoreError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _is_well(target: TargetStatus) -> bool:
    return bool(target.checks_now) and target.status in (Status.UP, Status.DEGRADED)
