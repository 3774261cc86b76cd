"""Choices: which scope decides what of a probe. Pure.

Scopes nest: server, cluster, group, everything, the probe's defaults. The innermost that sets a value decides. A change
of an outer scope reaches all inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import evolve, field, fields, frozen

from .contract import Probe

BUILT_IN: Final = "built-in"


@frozen
class Choice:
    """One scope's wishes, in seconds; None: unset."""

    is_enabled: bool | None = None
    every: float | None = None
    timeout: float | None = None
    retention: float | None = None


@frozen
class Layer:
    """A scope's choices by probe."""

    scope: str
    choices: Mapping[str, Choice] = field(factory=dict)


@frozen
class Origin:
    """A value and its scope."""

    value: Any
    scope: str


KEYS: Final = tuple(each.name for each in fields(Choice))


def origins(probe: Probe, layers: Iterable[Layer], retention: float | None = None) -> dict[str, Origin]:
    """Return each value with its scope, innermost first. `retention`: default, in seconds."""
    known = list(layers)
    built_in = Choice(probe.is_enabled, probe.every, probe.timeout, retention)
    return {key: next(_said(key, probe.name, known), Origin(getattr(built_in, key), BUILT_IN)) for key in KEYS}


def _said(key: str, probe: str, layers: Iterable[Layer]) -> Iterator[Origin]:
    for layer in layers:
        value = getattr(layer.choices.get(probe), key, None)
        if value is not None:
            yield Origin(value, layer.scope)


@frozen
class Plan:
    """A probe on a target. `every`: seconds."""

    probe: Probe
    is_enabled: bool
    every: float


def planned(probe: Probe, layers: Iterable[Layer]) -> Plan:
    """Plan a probe, the innermost layer first."""
    found = origins(probe, layers)
    timeout = found["timeout"].value
    fitted = probe if timeout == probe.timeout else evolve(probe, timeout=timeout)
    return Plan(fitted, found["is_enabled"].value, found["every"].value)
