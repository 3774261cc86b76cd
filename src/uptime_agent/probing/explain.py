"""Which scope gives each value of a target's probes."""

# ruff: noqa: PLC0415 - see the face

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from schedule import Every

from ..config import Config
from ..text import printable

if TYPE_CHECKING:
    from ..postgres import Origin, PostgresTarget

NAMES: Final = {"is_enabled": "on", "every": "interval", "timeout": "timeout", "retention": "retention"}
"""Names of values in a file."""
BUILT_IN: Final = "built-in"
_PROBE: Final = 15
_VALUE: Final = 6
_CELL: Final = 15


def explained(target: PostgresTarget, config: Config) -> Iterator[str]:
    """Yield a table of 80 columns."""
    around = ", ".join(layer.scope for layer in target.layers)
    yield printable(f"{target.name} ({target.server}), scopes from the innermost out: {around}, built-in")
    if not target.is_enabled:
        yield "It is disabled: nothing of this is run."
    yield ""
    yield _line("probe", [*NAMES.values()])
    for name, found in _all(target, config).items():
        yield _line(name, [_cell(key, found[key]) for key in NAMES])


def explained_in_json(target: PostgresTarget, config: Config) -> Iterator[str]:
    """Yield an object for each probe. Times are in seconds."""
    for name, found in _all(target, config).items():
        values = {NAMES[key]: {"value": found[key].value, "scope": found[key].scope} for key in NAMES}
        yield json.dumps({"target": target.name, "probe": name, **values})


def _all(target: PostgresTarget, config: Config) -> dict[str, dict[str, Origin]]:
    from ..postgres import CATALOGUE, Origin, Retention, origins

    kept = config.metrics.retention(config.store)
    found = {name: origins(probe, target.layers, kept.keep(target.name, name)) for name, probe in CATALOGUE.items()}
    for each in found.values():
        if each["retention"].scope == BUILT_IN and each["retention"].value != Retention().default:
            each["retention"] = Origin(each["retention"].value, "metrics")
    return found


def _line(first: str, cells: list[str]) -> str:
    return " ".join([f"{first:<{_PROBE}}", *(f"{cell:<{_CELL}}" for cell in cells)]).rstrip()


def _cell(key: str, origin: Origin) -> str:
    return f"{_written(key, origin.value):<{_VALUE}} {_kind(origin.scope)}"


def _kind(scope: str) -> str:
    return scope.split(" ", 1)[0]


def _written(key: str, value: Any) -> str:
    if key == "is_enabled":
        return "yes" if value else "no"
    return str(Every(timedelta(seconds=value))).removeprefix("@every ")
