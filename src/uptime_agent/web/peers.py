"""Which peers may connect, and which connection gives way. Pure: no sockets.

    one peer                  half of the places
    all strangers             three quarters
    known peers               all

A known peer has sent something valid; all other peers are strangers. Without room, an answered connection gives way,
else the oldest connection without a request. So silent strangers keep no other peer out. Requests that may be lost are
counted, because a peer that was turned away is not silent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final
from weakref import WeakValueDictionary

from attrs import define, frozen

MOST_KNOWN: Final = 10_000
"""The most known peers. Beyond these, the peer that was silent longest becomes a stranger."""

_OF_ONE: Final = 0.5
_OF_STRANGERS: Final = 0.75


@frozen
class Ends:
    """The ends of a connection: two addresses, or the user at the other end of a Unix socket."""

    address: tuple[str, int] | None = None
    local: tuple[str, int] | None = None
    uid: int | None = None


@define(eq=False)
class PeerPlace:
    """`leave` is called if the connection must give way.

    `is_heard`: its request has come, so it stays. `is_answered`: it is closing.
    """

    peer: str
    leave: Callable[[], object]
    ends: Ends = Ends()
    is_heard: bool = False
    is_answered: bool = False


@define(eq=False)
class Losses:
    """How many requests may be lost: `own`, of one peer or of all strangers, and `deaf`, of anybody.

    A peer keeps its own as long as a target refers to them, though it became a stranger.
    """

    deaf: Losses | None = None
    own: int = 0

    @property
    def count(self) -> int:
        """The requests that may be lost. It never falls."""
        return self.own + (self.deaf.own if self.deaf else 0)


class Peers:
    """At most `most` connections, and the known peers."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: dict[PeerPlace, None] = {}
        self._known: OrderedDict[str, Losses] = OrderedDict()
        self._deaf = Losses()
        self._strangers = Losses(self._deaf)
        self._losses = WeakValueDictionary[str, Losses]()
        """Of known peers, and of peers that were known and that targets refer to."""
        self.lost = 0
        """Connections that may have brought a request."""

    def __len__(self) -> int:
        return len(self._places)

    def enter(self, peer: str, leave: Callable[[], object]) -> PeerPlace | None:
        """Take a place. None: no room."""
        crowd = self._crowd(peer)
        if crowd is not None:
            done = next((each for each in crowd if each.is_answered), None)
            silent = next((each for each in crowd if not each.is_heard), None)
            gives_way = done or silent
            if gives_way is None or gives_way is silent:
                self.turned_away(peer if silent is None else silent.peer)
            if gives_way is None:
                return None
            self.left(gives_way)
            gives_way.leave()
        place = PeerPlace(peer, leave)
        self._places[place] = None
        return place

    def left(self, place: PeerPlace) -> None:
        """Give a place back. Idempotent."""
        self._places.pop(place, None)

    def _crowd(self, peer: str) -> Iterable[PeerPlace] | None:
        same = [each for each in self._places if each.peer == peer]
        if len(same) >= self._most * _OF_ONE:
            return same
        strangers = [each for each in self._places if each.peer not in self._known]
        if peer not in self._known and len(strangers) >= self._most * _OF_STRANGERS:
            return strangers
        if len(self._places) < self._most:
            return None
        return [*strangers, *(each for each in self._places if each.peer in self._known)]

    # -- requests that may be lost -------------------------------------------------------------------------------------

    def know(self, peer: str) -> None:
        """Note that a peer sent something valid."""
        self._known[peer] = self._losses.setdefault(peer, Losses(self._deaf))
        self._known.move_to_end(peer)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def turned_away(self, peer: str) -> None:
        """Count a connection closed before its request was read."""
        self.lost += 1
        self.losses(peer).own += 1

    def deaf(self) -> None:
        """Count a connection that could not be accepted."""
        self.lost += 1
        self._deaf.own += 1

    def losses(self, peer: str | None) -> Losses:
        """Return a peer's losses; for a stranger, those of all strangers."""
        return self._losses.get(peer or "", self._strangers)


def peer_of(address: str) -> str:
    """Return an address's peer. All addresses of an IPv6 /64 are one peer."""
    found = ip_address(address.partition("%")[0])
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Network((found, 64), strict=False))
