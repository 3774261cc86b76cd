"""What every contender script has in common: how it is asked, and how it answers.

A contender is a plain script with one function per scenario. It runs in a process of its own, as
`python ours.py SCENARIO '{"jobs": 100}'`, calls the function of that name with the sizes as keyword arguments, and
prints one line of JSON. Only `our*.py` import our packages: the peers' environments do not have them.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version

Values = dict[str, float]
Measurement = Callable[..., Values]


class Unable(Exception):
    """This contender cannot do this scenario; the message says why."""


def serve(
    measurements: Mapping[str, Measurement],
    *,
    cannot: Mapping[str, str] | None = None,
    distribution: str | None = None,
) -> None:
    """The scenario named on the command line has been measured and its answer printed.

    `cannot` maps the scenarios that this contender has no means for to the reason; `distribution` is the one whose
    version the answer carries.
    """
    name, sizes = sys.argv[1], json.loads(sys.argv[2])
    answer: dict[str, object] = {"version": _version_of(distribution)}
    try:
        answer["values"] = _measurement(name, measurements, cannot or {})(**sizes)
        answer["status"] = "ok"
    except Unable as error:
        answer |= {"status": "n/a", "reason": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    # Taking a million objects apart is no part of any measurement, nor are loops that some peers leave behind.
    os._exit(0)


def _measurement(name: str, measurements: Mapping[str, Measurement], cannot: Mapping[str, str]) -> Measurement:
    if name in cannot:
        raise Unable(cannot[name])
    if name not in measurements:
        raise Unable("not written for this contender")
    return measurements[name]


def _version_of(distribution: str | None) -> str:
    if distribution is None:
        return "Python " + sys.version.split()[0]
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return f"{distribution} (not installed, from the path)"
