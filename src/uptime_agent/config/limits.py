"""Limits. The file decides, or else the environment, or else the defaults."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import frozen

from scheduler import Retention

from ..toml import Section, Unfit, bounded, megabytes, one_form, seconds, suggestion, whole

MOST_RECORDS: Final = 1_000_000
TOTAL: Final = "total"
HOSTS: Final = "host:*"
HOST: Final = "host:"
_VARIABLE: Final = "TIMERQUEUE_LIMIT_"
_PER_KIND: Final = 200
_LARGEST: Final = 10**15
"""A larger float may be no whole number."""


@frozen
class CheckLimits:
    """Checks at a time: in `total`, and by name of a kind or host."""

    total: float
    named: Mapping[str, float]

    def now(self, before: CheckLimits) -> dict[str, float]:
        """The named limits after `before`. A host that lost its own gets that of all hosts."""
        gone = {name: self.named[HOSTS] for name in before.named if name not in self.named and name.startswith(HOST)}
        return {**gone, **self.named}


def read_limits(
    section: Section, kinds: Iterable[str], environment: Mapping[str, str]
) -> tuple[CheckLimits, list[str]]:
    """Read limits, with warnings about variables that are not used."""
    sizes: dict[str, float] = {TOTAL: 500.0, **dict.fromkeys(kinds, float(_PER_KIND)), HOSTS: 10.0}
    warnings: list[str] = []
    for name in list(sizes):
        default = sizes[name]
        if not section.has(name):
            default = _from_environment(name, default, environment, warnings)
        sizes[name] = section.take(name, _size, default, _meaning(name))
    sizes |= _of_hosts(section)
    section.end(also_known=["host:NAME"])
    warnings.extend(_unknown_variables(sizes, environment))
    return CheckLimits(sizes.pop(TOTAL), sizes), warnings


def _meaning(name: str) -> str:
    counted = {TOTAL: "all checks. Make sure that you have that many file descriptors", HOSTS: "checks of each host"}
    return f"{counted.get(name, f'checks of kind {name}')}. `{variable_of(name)}` says so where the file is silent"


def _of_hosts(section: Section) -> dict[str, float]:
    named = {key.removeprefix(HOST): key for key in section.table if key.startswith(HOST) and key != HOSTS}
    meaning = "checks of that host, however it is spelled: with capitals, as IDN, with a dot at the end"
    return {
        HOST + host: section.take(named[given], _size, math.inf, f"{meaning}. By default as `{HOSTS}`")
        for host, given in one_form(named, section, HOST)
    }


def variable_of(name: str) -> str:
    """Its environment variable, such as TIMERQUEUE_LIMIT_HTTP or TIMERQUEUE_LIMIT_HOST."""
    return _VARIABLE + name.partition(":")[0].upper()


def _size(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not value >= 1 or (value != math.inf and (value > _LARGEST or value != int(value))):
        raise Unfit("a whole number from 1, or inf for no limit", value)
    return float(value)


def _from_environment(name: str, default: float, environment: Mapping[str, str], warnings: list[str]) -> float:
    text = environment.get(variable_of(name))
    if text is None:
        return default
    try:
        return _size(float(text))
    except (ValueError, Unfit):
        variable = variable_of(name)
        warnings.append(f'{variable}: expected a whole number from 1, found "{text}"; using the default {default:g}')
        return default


def _unknown_variables(sizes: Iterable[str], environment: Mapping[str, str]) -> Iterable[str]:
    known = {variable_of(name) for name in sizes}
    for variable in sorted(environment):
        if variable.startswith(_VARIABLE) and variable not in known:
            yield f"{variable}: there is no such limit{suggestion(variable.lower(), known)}"


def read_retention(section: Section) -> Retention:
    """Read [history]; inf: without a bound."""
    default = Retention()
    found = Retention(
        per_job=section.take("per_job", bounded(whole(1, MOST_RECORDS)), default.per_job, "checks of one target"),
        age=section.take("age", bounded(seconds), default.age, "since a check"),
        total_bytes=section.take("size", bounded(megabytes), default.total_bytes, "of the whole history, roughly"),
    )
    section.end()
    return found
