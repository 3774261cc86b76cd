"""Choices: what a scope says of a probe, and which scope has the last word. Pure.

Scopes lie within one another: a server in a cluster, that in a group, that in everything, and around all is what the
probe itself says. Each value comes from the innermost scope that sets it. Nothing is copied from one scope into
another, so that a change of an outer one reaches everybody who has no value of his own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import evolve, field, fields, frozen

from .contract import Probe

BUILT_IN: Final = "built-in"
"""The scope around all others: what the probe says of itself."""


@frozen
class Choice:
    """The wishes of one scope for one probe; None: it says nothing. `every`, `timeout`, `retention`: seconds."""

    is_enabled: bool | None = None
    every: float | None = None
    timeout: float | None = None
    retention: float | None = None


@frozen
class Layer:
    """A scope and what it says, by the names of probes."""

    scope: str
    choices: Mapping[str, Choice] = field(factory=dict)


@frozen
class Origin:
    """A value of a probe on a target, and the scope that it comes from."""

    value: Any
    scope: str


KEYS: Final = tuple(each.name for each in fields(Choice))


def origins(probe: Probe, layers: Iterable[Layer], retention: float | None = None) -> dict[str, Origin]:
    """Return each value of a probe with the scope that gives it. `layers`: the innermost one first.

    `retention`: seconds for which samples are kept if no scope says so.
    """
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
    """How one probe is run on one target: the probe with the timeout of there, every so many seconds, or not at all."""

    probe: Probe
    is_enabled: bool
    every: float


def planned(probe: Probe, layers: Iterable[Layer]) -> Plan:
    """Return how a probe is run where these scopes hold, the innermost one first."""
    found = origins(probe, layers)
    timeout = found["timeout"].value
    fitted = probe if timeout == probe.timeout else evolve(probe, timeout=timeout)
    return Plan(fitted, found["is_enabled"].value, found["every"].value)
