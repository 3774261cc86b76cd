"""The parts of an agent, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from attrs import frozen

from scheduler import (
    JobAdded,
    JobChanged,
    JobFinished,
    JobRemoved,
    RunEnded,
    RunMissed,
    Scheduler,
    Store,
    StoreDown,
    StoreUp,
)

from .acts import ActKeeper, Acts
from .checks import Resolver, StepsRun, TargetCheck
from .config import Config, Network, spoken_for
from .heartbeat import OURS, Heart, StoreOutage, Vitals, heart_of
from .notify import TASK as NOTIFY, ChannelDeps, MessageDelivery, Outbox
from .probing import Probing
from .push import LIMIT as HANDED, MAX_AT_ONCE as MOST_HANDED, Signals
from .quorum import Poll, duties_of, poll_of
from .relations import LIMIT as GROUPS, Above, Answers, Elsewhere, Groups, Here, Parents, SharedGroups, elsewhere_of
from .show import Display, Monitor
from .standing import TASK as CHECK, Board, CheckTask, Gate, Maintenance, OnlineTarget, Recall, Recheck
from .targets import CheckDeps, Targets, act_deps, check_of, is_new, is_ours, tell_acts
from .web import Peers, most_connections

CRASH_FLOOR: Final = 10.0
"""Seconds that a check rests after a crash during its run."""

EACH_CHANNEL: Final = "channel:*"
"""One message at a time."""


class TaskRoom:
    """Sizes the scheduler's tasks at a time."""

    def __init__(self, scheduler: Scheduler, config: Config) -> None:
        self._scheduler = scheduler
        self._config = config
        self._of_probes = 0

    def for_probes(self, count: int) -> None:
        """Make room for `count` probes."""
        self._of_probes = count
        self._resize({})

    def follow(self, config: Config) -> None:
        """Apply the limits of a new configuration."""
        before, self._config = self._config, config
        if config.limits != before.limits or len(config.channels) != len(before.channels):
            self._resize(config.limits.now(before.limits))

    def _resize(self, limits: Mapping[str, float]) -> None:
        self._scheduler.resize(places(self._config, self._of_probes), limits)


@frozen(kw_only=True)
class Checking:
    """An agent's targets, and what surrounds them."""

    board: Board
    recall: Recall
    elsewhere: Elsewhere | None
    here: Here
    groups: Groups | SharedGroups
    maintenance: Maintenance
    targets: Targets
    keeper: ActKeeper
    acts: Acts

    @property
    def shared_groups(self) -> SharedGroups | None:
        """The groups judged by jobs, if the store is shared."""
        return self.groups if isinstance(self.groups, SharedGroups) else None


@frozen(kw_only=True)
class Parts:
    """All parts of an agent. `to_channels`: the reach of targets does not bind channels."""

    ways: CheckDeps
    scheduler: Scheduler
    room: TaskRoom
    has_past: bool
    poll: Poll | None
    checking: Checking
    recheck: Recheck
    answers: Answers | None
    to_channels: Resolver
    outbox: Outbox
    delivery: MessageDelivery
    outage: StoreOutage
    heart: Heart | None
    signals: Signals
    probing: Probing
    monitor: Monitor


def assembled(config: Config, display: Display, ways: CheckDeps, *, is_once: bool) -> Parts:
    """Make idle parts. Raises InvalidJob, StoreError."""
    store = config.store.make()
    scheduler = _scheduler(config, ways, store)
    room = TaskRoom(scheduler, config)
    clock, clean = ways.clock, ways.redactor.clean
    monitor = Monitor(display, scheduler.stop, clean)
    poll = None if is_once else poll_of(store, clock)
    elsewhere = None if is_once else elsewhere_of(store, clean)
    checking = checking_of(
        scheduler,
        ways,
        config.network,
        is_once=is_once,
        poll=poll,
        elsewhere=elsewhere,
        owner=config.owner,
        say=monitor.notice,
    )
    recheck = Recheck(scheduler, checking.board.targets, rest=CRASH_FLOOR)
    to_channels = Resolver(config.hosts)
    outbox = _outbox(config, scheduler, ways, checking, monitor)
    probing = Probing(
        config,
        scheduler,
        ways.resolver,
        clock,
        room.for_probes,
        learn=ways.redactor.learn,
        say=monitor.notice,
        is_once=is_once,
        duties=None if is_once else duties_of(store),
    )
    if probing.places:
        room.for_probes(probing.places)
    parts = Parts(
        ways=ways,
        scheduler=scheduler,
        room=room,
        has_past=store is not None,
        poll=poll,
        checking=checking,
        recheck=recheck,
        answers=None if elsewhere is None else Answers(elsewhere, checking.here.is_here, recheck, clock),
        to_channels=to_channels,
        outbox=outbox,
        delivery=MessageDelivery(outbox, config.channels, ChannelDeps(to_channels, clock), clean),
        outage=StoreOutage(checking.board.tell, clock, is_shared=config.store.fleet is not None),
        heart=heart_of(
            None if is_once else config.heartbeat,
            Vitals(scheduler, outbox),
            resolver=to_channels,
            clock=clock,
            redactor=ways.redactor,
            say=monitor.notice,
        ),
        signals=Signals(scheduler, monitor.notice, now=clock.wall, peers=Peers(most_connections())),
        probing=probing,
        monitor=monitor,
    )
    scheduler.register(NOTIFY, parts.delivery.run, without_store=True)
    _connect(parts)
    return parts


def _outbox(config: Config, scheduler: Scheduler, ways: CheckDeps, checking: Checking, monitor: Monitor) -> Outbox:
    return Outbox(
        scheduler,
        config.channels,
        routes_of(config),
        config.rules,
        now=ways.clock.wall,
        say=monitor.notice,
        clean=ways.redactor.clean,
        unstored=OURS,
        acts_of=checking.keeper.acts_of,
    )


def checking_of(
    scheduler: Scheduler,
    ways: CheckDeps,
    network: Network,
    *,
    is_once: bool = False,
    poll: Poll | None = None,
    elsewhere: Elsewhere | None = None,
    owner: str | None = None,
    say: Callable[[str], None] = lambda _text: None,
) -> Checking:
    """Make what checks targets, and register its task. `owner`: the file that names them."""
    clock, clean = ways.clock, ways.redactor.clean
    checks: dict[str, TargetCheck | StepsRun] = {}
    board = Board((), clean)
    ours, new = partial(is_ours, scheduler), partial(is_new, scheduler)
    recall = Recall(scheduler, board.targets, board.remembered, clock, clean, is_new=new, is_ours=ours)
    here = Here(board.targets, recall, elsewhere, ours)
    groups = (
        Groups(board.targets, recall.has, board.tell)
        if elsewhere is None
        else SharedGroups(scheduler, board.targets, elsewhere, board.tell, is_here=here.is_here, now=clock.wall)
    )
    parents = Parents(board.targets, groups, here.known)
    above = Above(board.targets, parents, here, recall, elsewhere)
    probes = [OnlineTarget(each.name, check_of(each, ways)) for each in network.probes]
    maintenance = Maintenance(by_hand=lambda *at: keeper.maintenance_at(*at))  # noqa: PLW0108 - it is made below
    deps = act_deps(board.targets, groups, here, recall, maintenance, now=clock.wall, say=say)
    keeper = ActKeeper(scheduler, deps)
    task = CheckTask(
        checks,
        board.targets,
        above.recall,
        clock,
        gate=Gate(clock, probes, network.every),
        maintenance=maintenance,
        cause=parents.cause,
        asks=_nobody if is_once else above.unchecked,
        look=above.look,
        poll=poll,
    )
    scheduler.register(CHECK, task.run, without_store=True)
    targets = Targets(
        scheduler,
        ways,
        board,
        checks,
        above,
        longest_doubt=network.longest,
        vote=None if poll is None or is_once else task.vote,
        is_once=is_once,
        owner=owner,
        acts_of=keeper.acts_of,
    )
    return Checking(
        board=board,
        recall=recall,
        elsewhere=elsewhere,
        here=here,
        groups=groups,
        maintenance=maintenance,
        targets=targets,
        keeper=keeper,
        acts=Acts(scheduler, keeper, deps),
    )


def places(config: Config, of_probes: int = 0) -> float:
    """Tasks at a time. Channels, probes, groups and other nodes' signals take no check's place."""
    is_fleet = config.store.fleet is not None
    of_agents = is_fleet * (bool(config.groups) + MOST_HANDED * (config.push is not None))
    return config.limits.total + len(config.channels) + of_probes + of_agents


def routes_of(config: Config) -> dict[str, tuple[str, ...] | None]:
    """The channels of targets, of groups, and of our own store; None: all."""
    groups = {OURS: None, **{group.name: group.notify for group in config.groups}}
    members = dict.fromkeys(spoken_for(config.targets, config.groups), ())
    return groups | {target.name: target.notify for target in config.targets if target.is_enabled} | members


def _connect(parts: Parts) -> None:
    """The order matters: targets recall their past first."""
    board, scheduler = parts.checking.board, parts.scheduler
    board.subscribe(parts.outbox.hear)
    board.subscribe(parts.monitor.hear)
    board.subscribe(parts.recheck.hear)
    if parts.answers is not None:
        board.subscribe(parts.answers.hear)
    board.subscribe(parts.checking.groups.hear)
    board.subscribe(partial(tell_acts, parts.checking.keeper))
    parts.checking.keeper.subscribe(parts.outbox.acts_changed)
    scheduler.listen(parts.checking.keeper.listen, JobAdded, JobChanged, JobRemoved, JobFinished)
    scheduler.listen(board.listen)
    scheduler.listen(parts.recheck.listen, RunEnded)
    if (shared := parts.checking.shared_groups) is not None:
        scheduler.listen(shared.listen, RunEnded)
    scheduler.listen(parts.outbox.listen, RunEnded, JobFinished)
    scheduler.listen(parts.outage.listen, StoreDown, StoreUp)
    scheduler.listen(parts.signals.listen, RunMissed, RunEnded, StoreDown, StoreUp)


def _scheduler(config: Config, ways: CheckDeps, store: Store | None) -> Scheduler:
    return Scheduler(
        places(config),
        {**config.limits.named, EACH_CHANNEL: 1, GROUPS: 1, HANDED: MOST_HANDED},
        clock=ways.clock,
        store=store,
        crash_floor=CRASH_FLOOR,
        retention=config.retention,
    )


def _nobody(_name: str, _began: float) -> tuple[str, ...]:
    return ()
