"""Which peers may have a connection, and which connection gives way. Pure: it knows no sockets.

    one peer                                  half of the places
    all strangers together                    three quarters of them
    peers that are known                      all of them

Where there is no room, one that has been answered gives way, or the oldest whose request has not come yet. So a
stranger who opens connections and says nothing keeps nobody out. Requests that may be lost by that are counted, for
each peer that is known: nobody is called silent whose peer was turned away.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from attrs import define

MOST_KNOWN: Final = 10_000
"""Peers that are remembered. Beyond them the one that has been silent for longest is a stranger again."""

_OF_ONE: Final = 0.5
_OF_STRANGERS: Final = 0.75


@define(eq=False)
class Place:
    """The place of one connection. `leave`: called if it has to give way.

    `is_heard`: its request has come whole, so it keeps the place until it is answered. `is_answered`: it is only closed
    in good order now.
    """

    peer: str
    leave: Callable[[], object]
    is_heard: bool = False
    is_answered: bool = False


class Peers:
    """The connections that are open, `most` at a time, and the peers that are known."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: dict[Place, None] = {}
        self._known: OrderedDict[str, int] = OrderedDict()
        """How often each was turned away."""
        self._strangers = 0
        """How often strangers were."""
        self._deaf = 0
        """How often nobody could be let in at all."""
        self.lost = 0
        """How many connections were closed, or never accepted, that may have brought a request."""

    def __len__(self) -> int:
        return len(self._places)

    def enter(self, peer: str, leave: Callable[[], object]) -> Place | None:
        """Take a place for a connection of that peer. None: there is none for it."""
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
        place = Place(peer, leave)
        self._places[place] = None
        return place

    def left(self, place: Place) -> None:
        """Give a place back. Giving it back again changes nothing."""
        self._places.pop(place, None)

    def _crowd(self, peer: str) -> Iterable[Place] | None:
        """The connections of which one has to give way to a new one of that peer, oldest first. None: none has to."""
        same = [each for each in self._places if each.peer == peer]
        if len(same) >= self._most * _OF_ONE:
            return same
        strangers = [each for each in self._places if each.peer not in self._known]
        if peer not in self._known and len(strangers) >= self._most * _OF_STRANGERS:
            return strangers
        if len(self._places) < self._most:
            return None
        return [*strangers, *(each for each in self._places if each.peer in self._known)]

    # -- what was not heard --------------------------------------------------------------------------------------------

    def know(self, peer: str) -> None:
        """Take note that this peer has sent something of ours, as a signal of one of our targets."""
        self._known.setdefault(peer, 0)
        self._known.move_to_end(peer)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def turned_away(self, peer: str) -> None:
        """Take note that a connection of that peer is closed before its request was read."""
        self.lost += 1
        if peer in self._known:
            self._known[peer] += 1
        else:
            self._strangers += 1

    def deaf(self) -> None:
        """Take note that somebody could not even be let in, nobody knows who."""
        self.lost += 1
        self._deaf += 1

    def missed(self, peer: str | None) -> int:
        """Count what may have been a request of that peer and was not read. None: nobody knows the peer yet."""
        return self._deaf + self._known.get(peer or "", self._strangers)


def peer_of(address: str) -> str:
    """The peer that an address belongs to. Whoever has an IPv6 address has the whole /64 around it."""
    found = ip_address(address.partition("%")[0])
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Network((found, 64), strict=False))
