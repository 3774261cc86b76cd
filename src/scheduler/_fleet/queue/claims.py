"""Claims: the jobs that are here for one tick."""

from __future__ import annotations

from attrs import define

from ..._journal import Journal
from ..._placement import is_part
from ...queues import Delivery, Place, Tick
from ...stores import Peer, Sharing, View


class GivenBack(Delivery):
    """A delivery that others may have now."""

    def __init__(self, was: Delivery) -> None:
        self._tick, self._place = was.tick, was.place

    @property
    def tick(self) -> Tick:
        return self._tick

    @property
    def place(self) -> Place | None:
        return self._place

    def done(self) -> None:
        """Do nothing."""

    def release(self, seconds: int = 0) -> None:
        """Do nothing."""

    def bury(self) -> None:
        """Do nothing."""


@define(eq=False)
class Claim:
    """A job that is here. Instants in UTC microseconds.

    - `due_us`: the execution that brought it. None: it was added here. `taken_us`: the execution that its row has
      taken, which differs if the grid has changed. `placed_us`: the execution put since.
    - `planned`: the last planned execution, and its schedule.
    - `gives_back`: no run has begun, and another node should have it after `rests` seconds.
    - `is_fetched`: it came out of its turn. `starts_here`: its first start needs no queue.
    - `where`: its labels, if it is for other nodes.
    """

    due_us: int | None = None
    delivery: Delivery | None = None
    taken_us: int | None = None
    placed_us: int | None = None
    planned: tuple[int | None, str] | None = None
    gives_back: bool = False
    rests: int = 1
    is_long: bool = False
    starts_here: bool = False
    is_fetched: bool = False
    where: str | None = None

    def settle(self) -> None:
        if self.delivery is None:
            return
        if self.gives_back:
            self.delivery.release(self.rests)
        else:
            self.delivery.done()


class Claims:
    """The jobs that are here: an Ownership. Changed on the loop; any thread may ask."""

    is_shared = True
    are_asked = True
    know_parts = False

    def __init__(self, sharing: Sharing | None) -> None:
        self._sharing = sharing
        self.by_id: dict[str, Claim] = {}
        self.leaving: dict[str, Claim] = {}
        self.strays: dict[str, Claim] = {}

    @property
    def view(self) -> View | None:
        return None if self._sharing is None else self._sharing.last

    @property
    def know_labels(self) -> bool:
        return self._sharing is not None

    def fits(self, where: str | None) -> bool:
        """With a queue there are no parts."""
        if where is None:
            return True
        us = self._us()
        return us is not None and not is_part(where) and us.fits(where)

    def has_labels(self) -> bool:
        us = self._us()
        return us is not None and bool(us.labels)

    def has_others(self, where: str | None = None) -> bool:
        view = self.view
        return view is not None and any(
            peer.epoch != view.me and (where is None or peer.fits(where)) for peer in view.peers
        )

    def _us(self) -> Peer | None:
        view = self.view
        return None if view is None else next((peer for peer in view.peers if peer.epoch == view.me), None)

    def holds(self, id: str, place: str | None = None, where: str | None = None) -> bool:  # noqa: ARG002 - the node that takes a tick has its job
        return id in self.by_id

    def has(self, id: str) -> bool:
        return id in self.by_id or id in self.leaving or id in self.strays

    def begin(self, id: str, place: str | None = None, where: str | None = None, *, at_once: bool) -> bool:  # noqa: ARG002 - places have no owner
        """Keep a new job until it is durable, and its first start over. False: its labels are others'."""
        if not self.fits(where):
            return False
        self.by_id.setdefault(id, Claim(starts_here=at_once))
        return True

    def is_idle(self) -> bool:
        """Return False: an execution may be on its way here."""
        return False

    def let_go(self) -> None:
        for hold in self._all():
            if hold.delivery is not None:
                hold.delivery.release()
        for holds in (self.by_id, self.leaving, self.strays):
            holds.clear()

    def give_back(self, seconds: int) -> int:
        """Let others have all executions, in case we are buried. Return their number."""
        count = 0
        for hold in self._all():
            if hold.delivery is not None and not isinstance(hold.delivery, GivenBack):
                hold.delivery.release(seconds)
                hold.delivery = GivenBack(hold.delivery)
                count += 1
        return count

    def _all(self) -> list[Claim]:
        return [*self.by_id.values(), *self.leaving.values(), *self.strays.values()]

    def agent_of(self, id: str, place: str | None = None, where: str | None = None) -> str | None:  # noqa: ARG002 - as above
        us = self._us()
        return None if us is None or id not in self.by_id else us.name


def is_being_removed(journal: Journal, id: str) -> bool:
    noted = [(sealed.batch.jobs, sealed.batch.finished) for sealed in journal.unsettled]
    noted.append((journal.pending.jobs, journal.pending.finished))
    rows = [jobs.get(id) for jobs, finished in noted if id in jobs or id in finished]
    return rows[-1:] == [None]
