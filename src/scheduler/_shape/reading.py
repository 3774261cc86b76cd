"""`from_json`, and the schemas of what it reads and what `to_json` writes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from attrs import has

from .forms import form_of, schema_to_read
from .info import Informed, JobInfo
from .spec import JobSpec
from .spec_json import read_spec


def from_json(kind: type[JobSpec], data: object) -> JobSpec:
    """Return the JobSpec that `data` says, as `to_json` writes it or as people do.

    Only "id", "task" and "schedule" must be there; the others have the defaults of `Scheduler.add`. Durations may be
    seconds or text, "needs" a name, an array of names or an object.

    Raises InvalidJob, in the words of `add`. Its `path` is the wrong key.
    """
    if kind is not JobSpec:
        msg = f"from_json reads a JobSpec, not {kind!r}: only jobs are told to a scheduler"
        raise TypeError(msg)
    return read_spec(data)


def json_schema_of(kind: type) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what `to_json` writes for a class, such as Record or RunEnded.

    For JobSpec it is the schema of what `from_json` reads. Raises TypeError for a class that `to_json` does not know.
    """
    if isinstance(kind, type) and issubclass(kind, Informed):
        kind = JobInfo
    if not isinstance(kind, type) or not has(kind):
        msg = f"json_schema_of takes a class that to_json knows, such as Record, not {kind!r}"
        raise TypeError(msg)
    return deepcopy(schema_to_read() if kind is JobSpec else form_of(kind).schema)
