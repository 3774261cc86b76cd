"""Suites of Gatus as steps of one check."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..foreign import Draft, ForeignTable, Items, Mapped
from .conditions import body_path, take_conditions

_CONTEXT: Final = re.compile(r"\[CONTEXT\]\.([\w-]+)")
_SOURCE: Final = re.compile(r"\[BODY\]((?:\.[\w-]+|\[[0-9]{1,9}\])+)")
_NO_NAME: Final = re.compile(r"[^a-z0-9_]")


def steps_of(
    suite: ForeignTable, context: Mapping[str, str], take_request: Callable[[Draft, ForeignTable], None]
) -> list[Draft]:
    """A suite's steps, with constant texts filled in."""
    steps: list[Draft] = []
    value = suite.take("endpoints")
    for position, (each, line) in enumerate(
        zip(value.values, value.lines, strict=True) if isinstance(value, Items) else ()
    ):
        if not isinstance(each, Mapped):
            suite.lose("the key endpoints: expected a list of tables", line)
            continue
        table = ForeignTable(_filled(each, context), suite.losses)
        steps.append(_step(table, position + 1, take_request))
    return steps


def _step(table: ForeignTable, number: int, take_request: Callable[[Draft, ForeignTable], None]) -> Draft:
    step = Draft(table.text("name") or f"step {number}", kind="check.step", source=table)
    take_request(step, table)
    if "timeout" in table.table("client"):
        step.options["timeout"] = table.table("client").text("timeout")
    take_conditions(step, table.lined("conditions"))
    if table.flag("always-run"):
        step.options["always"] = True
    taken = _taken(table, step)
    if taken:
        step.options["take"] = taken
    table.rest({"graphql": (False,)})
    return step


def _taken(table: ForeignTable, step: Draft) -> dict[str, Any]:
    store = table.table("store")
    found: dict[str, Any] = {}
    for key in store:
        source = _SOURCE.fullmatch(store.text(key))
        if source is None:
            step.leave(f"{key} = {store.text(key)}, which it hands on", store.line_of(key))
        else:
            found[_name(key)] = {"json": body_path(source[1])}
    return found


def _name(key: str) -> str:
    found = _NO_NAME.sub("_", key.lower())
    return found if found[:1].isalpha() or found[:1] == "_" else f"_{found}"


def _filled(value: Any, context: Mapping[str, str]) -> Any:
    """Replace [CONTEXT].name by its text, or {name} if it is handed on."""
    match value:
        case Mapped():
            values = {
                key: each if key in {"conditions", "store"} else _filled(each, context)
                for key, each in value.values.items()
            }
            return Mapped(values, value.lines, value.line, value.size)
        case str():
            return _CONTEXT.sub(lambda found: context.get(found[1]) or f"{{{_name(found[1])}}}", value)
        case _:
            return value
