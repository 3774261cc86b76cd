"""A program that sets limits for itself and becomes another one: `python launch.py PROGRAM ARGUMENTS...`.

It is started for each message of a channel `command`, with no packages but Python's own. What it becomes keeps the
limits, and hands them on to its children.
"""

from __future__ import annotations

import os
import resource
import sys

LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: 60,  # seconds
    resource.RLIMIT_FSIZE: 64 * 2**20,  # bytes of each file
    resource.RLIMIT_NOFILE: 256,
}


def main(argv: list[str]) -> None:
    """Set the limits, none above what holds already, and become the program."""
    for limit, most in LIMITS.items():
        _, hard = resource.getrlimit(limit)
        size = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (size, size))
    try:
        os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted
    except OSError as exc:
        sys.exit(f"cannot start {argv[0]}: {exc.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
