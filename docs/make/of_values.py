"""The page of values that programs read and write, and of their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from prose import fields_of, paragraphs

from scheduler import (
    Change,
    EventPage,
    Holder,
    JobInfo,
    JobSpec,
    NumberedEvent,
    Pause,
    Record,
    Retry,
    RunInfo,
    Synced,
    Waited,
    Why,
    acting_as,
    export_json,
    export_toml,
    from_json,
    json_schema_of,
    read_jobs,
    to_json,
)


def values_page() -> str:
    """Return the page of specs, of values that tell how jobs stand, and of their JSON."""
    return "\n\n".join(
        [
            "# Reference: values and JSON",
            "[A recipe](../recipes.md#compare-your-jobs-with-a-configuration-service) shows them at work.",
            *(part for function in FUNCTIONS for part in function_item(function)),
            "## JobSpec",
            paragraphs(JobSpec.__doc__ or ""),
            "`JobSpec(id, task, schedule, ...)` takes the [options of `add`](scheduler.md#options-of-add) by keyword.",
            "As JSON it has these keys. Only `id`, `task` and `schedule` must be there when it is read:",
            f"```json\n{json.dumps(to_json(EXAMPLE), indent=2)}\n```",
            "Each key takes:",
            keys(json_schema_of(JobSpec)["properties"]),
            *(part for kind in SHOWN for part in class_item(kind)),
            *function_item(acting_as),
        ]
    )


FUNCTIONS = (to_json, from_json, json_schema_of, export_json, export_toml, read_jobs)
SHOWN = (JobInfo, RunInfo, Synced, Pause, Record, Why, Waited, Holder, Change, EventPage, NumberedEvent)

EXAMPLE = JobSpec(
    "web",
    "check",
    "@every 30s",
    args=["https://example.org"],
    needs="http",
    timeout="10s",
    retry=Retry.exponential("5s", max_retries=3),
    tags=["eu"],
    owner="cmdb",
)


def function_item(function: Any) -> list[str]:
    """Return a heading and the text of a function."""
    return [f"## `{function.__name__}`", paragraphs(function.__doc__ or "")]


def class_item(kind: type) -> list[str]:
    """Return a heading, the text and the fields of a class."""
    return [f"## {kind.__name__}", paragraphs(kind.__doc__ or ""), f"Fields: {fields_of(kind)}."]


def keys(properties: Mapping[str, Any]) -> str:
    """Return one item for each key of an object: what it may be."""
    return "\n".join(f"- `{name}`: {said(schema)}" for name, schema in properties.items())


def said(schema: Mapping[str, Any]) -> str:
    """Return a schema in words."""
    if "anyOf" in schema:
        return ", or ".join(dict.fromkeys(said(each) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{json.dumps(each)}`" for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "object" and "properties" in schema:
        return f"an object of {', '.join(f'`{name}`' for name in schema['properties'])}"
    if schema.get("type") == "array" and "items" in schema:
        return f"an array of {said(schema['items'])}s"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"an object of {said(schema['additionalProperties'])}s"
    return WORDS[schema.get("type", "")]


WORDS: Mapping[str, str] = {
    "": "anything",
    "array": "an array",
    "boolean": "`true` or `false`",
    "integer": "a whole number",
    "null": "`null`",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}
