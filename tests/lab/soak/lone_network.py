"""Go on in a network namespace of our own, with nothing but `lo`: what is sent reaches this machine alone."""
# ruff: noqa: T201 - it speaks to who started the program

import fcntl
import os
import socket
import struct
import subprocess
import sys
from contextlib import suppress

CANNOT = 2
"""Exit status of a program that cannot be tried on this machine."""

_SIOCSIFFLAGS, _SIOCGIFFLAGS, _SIOCSIFADDR, _IFF_UP = 0x8914, 0x8913, 0x8916, 1


def enter(script):
    """Start the script anew in a namespace of its own, unless it is there; or end with CANNOT."""
    inside = f"{script.stem.upper()}_INSIDE"
    if inside not in os.environ:
        for way in (["--net"], ["--map-root-user", "--net"]):
            with suppress(OSError):
                if not subprocess.run(["unshare", *way, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
                    os.environ[inside] = "1"
                    os.execvp("unshare", ["unshare", *way, sys.executable, str(script), *sys.argv[1:]])
        refuse(script, "this machine allows no network namespace (unshare --net)")
    names = [name for _, name in socket.if_nameindex()]
    if names != ["lo"]:
        refuse(script, f"expected a network of lo alone, found {', '.join(names)}")
    raise_interface("lo")


def refuse(script, reason):
    """End the program: it was not tried, and why."""
    print(f"{script.stem}: not tried: {reason}", file=sys.stderr)
    sys.exit(CANNOT)


def raise_interface(name, address=None):
    """Put an interface up, with an address if one is given."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        if address is not None:
            place = struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(control, _SIOCSIFADDR, place)
        request = struct.pack("16sH14x", name.encode(), 0)
        flags = struct.unpack_from("H", fcntl.ioctl(control, _SIOCGIFFLAGS, request), 16)[0]
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), flags | _IFF_UP))
