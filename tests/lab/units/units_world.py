"""A world in which agents borrow units, and everything goes wrong that can: they die, stand still, lose answers, send
rounds that arrive late and out of order, have clocks that are off, are buried too early, and come again.

What is under test is the part of the agent that counts its units (Account) and the decision of a round; the ledger is
that of units_kit. `turn` does one thing, which whoever drives the world chooses by numbers.
"""

from attrs import define, field

from scheduler._fleet.lending.allotment import Allotment
from scheduler.stores import Ask, StoreError, Wish
from units_kit import LEASE, Ledger, Lending

MARGIN = 0.5
NAME = "http"


@define(eq=False)
class Process:
    """An agent. `ahead`: by how much its clock is. `believed_until`: by its clock."""

    lending: Lending
    size: int
    ahead: float
    account: Allotment = field(init=False)
    running: int = 0
    """How many units are in use."""
    begun: list = field(factory=list)
    """When work began with those that rest."""
    waiting: list = field(factory=list)
    believed_until: float = 0.0
    is_paused: bool = False
    is_dead: bool = False
    on_its_way: list = field(factory=list)
    """Rounds and renewals that the store has not seen yet."""
    awaited: int = 0
    """Of which round the answer is awaited."""

    @property
    def epoch(self):
        return self.lending.epoch

    def __attrs_post_init__(self):
        self.account = Allotment(self.size)


class World:
    """`size`: of the limit. `freezes`: an agent waits for the answer of a round before it uses what was idle.
    `rest`: of a limit on the pace. `rests_after_death`: the store lets units of the dead rest. `ends_rest`: the end of
    a run ends that.
    """

    def __init__(
        self, size, agents, *, freezes=True, keeps_loans=True, rest=0.0, rests_after_death=True, ends_rest=False
    ):
        self.rest, self.said_rest, self.ends_rest = rest, rest if rests_after_death else 0.0, ends_rest
        self.begun = []
        """When any work has begun."""
        self.time = 100.0
        self.size = size
        self.freezes = freezes
        self.ledger = Ledger(lambda: self.time)
        self.ledger_keeps_loans = keeps_loans
        self.epochs = 0
        self.processes = []
        self.most = self.starts = 0
        for number in range(agents):
            self.join(number * 1_000.0)

    def join(self, ahead):
        self.epochs += 1
        process = Process(Lending(self.ledger, self.epochs), self.size, ahead)
        process.believed_until = self.time + ahead + LEASE - MARGIN
        process.lending.declare({NAME: self.size}, {NAME: self.said_rest})
        self.processes.append(process)

    def running(self):
        """Runs that go on now: those of the dead do not, nor do those of who stands still."""
        return sum(each.running for each in self.processes if not each.is_dead and not each.is_paused)

    def turn(self, draw):
        """Do one thing. `draw(n)`: a number below n."""
        for epoch in [epoch for epoch, until in self.ledger.leases.items() if until < self.time]:
            self.ledger.bury(epoch)
        living = [each for each in self.processes if not each.is_dead]
        if not living:
            self.join(draw(10) * 100.0)
            return
        process = living[draw(len(living))]
        acts = [
            self._wish, self._wish, self._start, self._start, self._start, self._end, self._end,
            self._send, self._send, *[self._arrive] * 8, self._renew, self._renew,
            self._pass, self._pass, self._bury, self._pause, self._kill, self._lose,
        ]  # fmt: skip
        acts[draw(len(acts))](process, draw)
        for each in self.processes:
            self._look_at_lease(each)
        self.most = max(self.most, self.running())

    def most_in_a_window(self):
        """Count what began at most within so many seconds as units rest."""
        return max((sum(0 <= at - first < self.rest - 1e-9 for at in self.begun) for first in self.begun), default=0)

    def believes(self, process):
        return self.time + process.ahead < process.believed_until

    def _look_at_lease(self, process):
        """Whoever does not hold its lease for sure cuts off what runs: within the margin, so at once here."""
        if self.rest:
            rested = [at for at in process.begun if at + self.rest <= self.time]
            process.running -= len(rested)
            del process.begun[: len(rested)]
        elif not process.is_paused and not self.believes(process):
            process.running = 0

    def _wish(self, process, draw):
        process.waiting.append(draw(50))

    def _start(self, process, draw):
        if process.is_paused or not process.waiting or not self.believes(process):
            return
        if process.running + 1 <= process.account.usable():
            process.waiting.sort()
            process.waiting.pop(0)
            process.running += 1
            self.starts += 1
            if self.rest:
                process.begun.append(self.time)
                self.begun.append(self.time)

    def _end(self, process, draw):
        if self.rest and self.ends_rest and process.begun:
            process.begun.pop(0)
            process.running -= 1
        elif not self.rest and not process.is_paused and process.running:
            process.running -= 1

    def _send(self, process, draw):
        if process.is_paused or not self.believes(process):
            return
        wishes = tuple(Wish(due * 1_000_000, 1) for due in sorted(process.waiting)[: self.size])
        ask = Ask(self.size, process.running, wishes, keeps=draw(2) * self.size, window=self.said_rest)
        process.lending.number += 1
        process.awaited = process.lending.number
        if self.freezes:
            process.account.sent(process.running, wishes, self.time)
        process.on_its_way.append(("round", process.awaited, ask))

    def _renew(self, process, draw):
        if not process.is_paused:
            process.on_its_way.append(("renew", self.time + process.ahead, None))

    def _arrive(self, process, draw):
        """Let something that was sent be carried out, not always what was sent first; the answer may be lost."""
        if not process.on_its_way:
            return
        kind, what, ask = process.on_its_way.pop(draw(len(process.on_its_way)))
        is_lost = draw(4) == 0
        if kind == "renew":
            if process.epoch not in self.ledger.leases:
                if not is_lost and not process.is_paused:  # it hears that it was buried, and comes again
                    process.running, process.is_dead = 0, True
                    self.join(process.ahead)
            else:
                self.ledger.leases[process.epoch] = self.time + LEASE
                if not is_lost:
                    process.believed_until = max(process.believed_until, what + LEASE - MARGIN)
            return
        try:
            answer = self.ledger.round(process.epoch, what, process.lending.sizes, {NAME: ask})
        except StoreError:
            return
        if not is_lost and what == process.awaited and not process.is_paused:
            process.account.answered(answer[NAME])

    def _pass(self, process, draw):
        self.time += draw(4) / 10

    def _bury(self, process, draw):
        """Anybody may be buried at any moment: a session lock that is lost says nothing of who runs."""
        if process.epoch in self.ledger.leases and (process.is_dead or draw(8) == 0):
            self.ledger.bury(process.epoch)
            if not self.ledger_keeps_loans:
                self.ledger.units = {key: each for key, each in self.ledger.units.items() if each[0] != process.epoch}

    def _pause(self, process, draw):
        process.is_paused = not process.is_paused and draw(4) == 0

    def _kill(self, process, draw):
        if draw(8) == 0:
            process.is_dead = True
            self.join(process.ahead)

    def _lose(self, process, draw):
        process.on_its_way = process.on_its_way[draw(2) :]
