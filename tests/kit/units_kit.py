"""Limits of the fleet without a server: the ledger in its shortest form, agents that borrow from it, and a slow line
between them in which answers may be lost.
"""

from attrs import define, field

from scheduler import Rate, Scheduler
from scheduler._fleet.lending import Units
from scheduler.stores import StoreTakenOver, StoreUnavailable
from scheduler.stores._units import FRESH, Books, decide

LEASE = 3.0


@define
class Ledger:
    """What the tables of units hold, and what a transaction of a round does with them. `now`: the store's clock."""

    now: object
    leases: dict = field(factory=dict)
    rounds: dict = field(factory=dict)
    sizes: dict = field(factory=dict)
    units: dict = field(factory=dict)
    rests: dict = field(factory=dict)
    """Seconds for which the units of a limit rest, by its name, as they were lent last."""
    wishes: dict = field(factory=dict)
    hearers: list = field(factory=list)
    count: int = 0
    moved: int = 0

    def join(self, epoch):
        self.leases[epoch] = self.now() + LEASE
        self.rounds[epoch] = 0

    def bury(self, epoch):
        """Remove an agent, whose units stay lent until its lease ends."""
        until = self.leases.pop(epoch)
        for key, (holder, end) in self.units.items():
            if holder == epoch and end is None:
                self.units[key] = (holder, until + self.rests.get(key[0], 0.0))
        for table in (self.sizes, self.wishes):
            for key in [key for key in table if key[1] == epoch]:
                del table[key]

    def round(self, epoch, number, sizes, asked):
        if epoch not in self.leases:
            raise StoreTakenOver("buried")
        if number <= self.rounds[epoch]:
            raise StoreUnavailable("late")
        self.rounds[epoch] = number
        self.count += 1
        self.sizes |= {(name, epoch): size for name, size in sizes.items()}
        self.units = {key: (who, until) for key, (who, until) in self.units.items() if not self._is_over(until)}
        answer, is_news = {}, False
        for name, ask in asked.items():
            decided = decide(epoch, ask, self._books(epoch, name))
            for unit in decided.gives:
                assert self.units.pop((name, unit))[0] == epoch
            for unit in decided.takes:
                assert (name, unit) not in self.units
                self.units[name, unit] = (epoch, None)
            self.rests[name] = decided.lent.window
            self.moved += len(decided.takes)
            self.wishes[name, epoch] = (self.now(), ask.wishes)
            is_news = is_news or decided.is_to_be_told
            answer[name] = decided.lent
        if is_news:
            for hear in self.hearers:
                hear()
        return answer

    def _is_over(self, until):
        return until is not None and until < self.now()

    def _books(self, epoch, name):
        family = f"{name.partition(':')[0]}:*"
        sizes = {}
        for key in (family, name):
            sizes |= {who: size for (limit, who), size in self.sizes.items() if limit == key}
        return Books(
            min(size for size, _ in sizes.values()),
            {number: who for (limit, number), (who, _) in self.units.items() if limit == name},
            {
                who: wishes
                for (limit, who), (at, wishes) in self.wishes.items()
                if limit == name and who != epoch and wishes and at > self.now() - FRESH
            },
            max(window for _, window in sizes.values()),
        )

    def lent(self, name, epoch):
        return sum(limit == name and who == epoch for (limit, _), (who, _) in self.units.items())


class Lending:
    """The verbs of one agent."""

    def __init__(self, ledger, epoch):
        self.ledger = ledger
        self.epoch = epoch
        self.number = 0
        self.sizes = {}
        ledger.join(epoch)

    def declare(self, sizes, windows):
        self.sizes = {name: (size, windows.get(name, 0.0)) for name, size in sizes.items()}

    def hear(self, hint):
        self.ledger.hearers.append(hint)

    def round(self, asked):
        self.number += 1
        return self.ledger.round(self.epoch, self.number, self.sizes, asked)

    def give_back(self):
        ledger, kept = self.ledger, {}
        for key, (holder, until) in ledger.units.items():
            rest = ledger.rests.get(key[0], 0.0)
            if holder != self.epoch or until is not None:
                kept[key] = (holder, until)
            elif rest:
                kept[key] = (holder, ledger.now() + rest)
        ledger.units = kept

    def loans(self):
        return []


class SlowWriter:
    """Carries out a call after half of `delay`, and answers after the other half. `cut`: calls fail."""

    def __init__(self, core, delay):
        self.core = core
        self.delay = delay
        self.cut = False

    def submit(self, call, done):
        self._later(self._carry_out, call, done)

    def close(self, wait, let_go):
        return True

    def _carry_out(self, call, done):
        if self.cut:
            answer = None, StoreUnavailable("cut off")
        else:
            try:
                answer = call(), None
            except (StoreUnavailable, StoreTakenOver) as exc:
                answer = None, exc
        self._later(done, *answer)

    def _later(self, func, *args):
        self.core.queue.push(self.core.monotonic() + self.delay / 2, func, *args)


class Agent:
    """A scheduler without a store that borrows units. `is_held`: it believes in its lease."""

    def __init__(self, ledger, clock, number, limits, *, delay=0.005, **options):
        self.is_held = True
        self.scheduler = Scheduler(clock=clock, limits={**options.pop("local", {}), **limits}, **options)
        core = self.scheduler._core
        self.lending = Lending(ledger, number)
        self.writer = SlowWriter(core, delay)
        self.units = Units(
            self.lending,
            {name: size.units if isinstance(size, Rate) else size for name, size in limits.items()},
            rests=self.scheduler._rests,
            writer=self.writer,
            core=core,
            holds_lease=lambda: self.is_held,
            tried=lambda _error: None,
        )

    async def __aenter__(self):
        await self.scheduler.__aenter__()
        self.units.begin()
        return self

    async def __aexit__(self, *exc):
        return await self.scheduler.__aexit__(*exc)
