"""Which peers may have a connection, and which connection gives way. Pure: it knows no sockets.

    one peer                                  half of the places
    all strangers together                    three quarters of them
    peers that are known                      all of them

Where there is no room, an answered connection gives way, or the oldest whose request has not come yet. So a silent
stranger with many connections keeps no other peer out. Possibly lost requests are counted, for each known peer: it is
not called silent while it was turned away.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from attrs import define

MOST_KNOWN: Final = 10_000
"""Peers that are remembered. Beyond them the one silent for longest becomes a stranger."""

_OF_ONE: Final = 0.5
_OF_STRANGERS: Final = 0.75


@define(eq=False)
class Place:
    """The place of one connection. `leave`: called if it must give way.

    `is_heard`: its whole request has come, so it keeps the place until the answer. `is_answered`: it is only being
    closed.
    """

    peer: str
    leave: Callable[[], object]
    is_heard: bool = False
    is_answered: bool = False


class Peers:
    """The open connections, at most `most`, and the known peers."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: dict[Place, None] = {}
        self._known: OrderedDict[str, int] = OrderedDict()
        """How often each was turned away."""
        self._strangers = 0
        """How often strangers were."""
        self._deaf = 0
        """How often no connection could be accepted at all."""
        self.lost = 0
        """Connections that were closed, or never accepted, and may have brought a request."""

    def __len__(self) -> int:
        return len(self._places)

    def enter(self, peer: str, leave: Callable[[], object]) -> Place | None:
        """Take a place for a connection of that peer. None: it has no room."""
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
        """The connections of which one must give way to a new one of that peer, oldest first. None: there is room."""
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
        """Note that this peer has sent something of ours, such as a signal of our target."""
        self._known.setdefault(peer, 0)
        self._known.move_to_end(peer)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def turned_away(self, peer: str) -> None:
        """Note that a connection of that peer was closed before its request was read."""
        self.lost += 1
        if peer in self._known:
            self._known[peer] += 1
        else:
            self._strangers += 1

    def deaf(self) -> None:
        """Note that a connection of an unknown peer could not be accepted."""
        self.lost += 1
        self._deaf += 1

    def missed(self, peer: str | None) -> int:
        """Count requests of that peer that may have been lost. None: the peer is unknown."""
        return self._deaf + self._known.get(peer or "", self._strangers)


def peer_of(address: str) -> str:
    """The peer of an address. The owner of an IPv6 address has the whole /64."""
    found = ip_address(address.partition("%")[0])
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Network((found, 64), strict=False))
