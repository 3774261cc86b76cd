"""Ports that are ours though nobody listens there: for targets that refuse, and for servers that come later, or again.

The system gives a free port to whoever asks next: another test's server, or a client, which can even connect to itself.
"""

import socket


def hold_port():
    """Bind a port at every address, and listen at none: whoever connects is refused until a server of ours listens.

    Return the socket that holds it; its end lets go. A server takes such a port by its number, with SO_REUSEADDR, as
    servers do: the system allows that beside a socket that does not listen, and gives the port to nobody by itself.
    """
    is_dual = socket.has_dualstack_ipv6()
    held = socket.socket(socket.AF_INET6 if is_dual else socket.AF_INET)
    if is_dual:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("::" if is_dual else "0.0.0.0", 0))
    return held


def number_of(held):
    """Return the number of a port that is held."""
    return held.getsockname()[1]
