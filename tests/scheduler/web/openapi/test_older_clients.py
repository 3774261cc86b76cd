"""The description of the API against that of the last release: a client written for it goes on working.

At a release: `PYTHONPATH=src:tests/kit/web python tests/scheduler/web/openapi/test_older_clients.py` writes it anew.
"""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from older_clients import breaks
from scheduler.web._openapi import openapi
from scheduler.web._routes import ROUTES

RELEASED = Path(__file__).with_name("released.json")


def test_the_api_has_only_additions():
    """No route, parameter, key, status or type of the last release is gone, and nothing new is demanded."""
    assert breaks(json.loads(RELEASED.read_text("utf-8")), openapi(ROUTES)) == []


def without(*path):
    """Return a change that takes away what lies there."""

    def change(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def setting(value, *path):
    """Return a change that puts a value there."""

    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


JOB, JOBS = ("paths", "/jobs/{id}"), ("paths", "/jobs", "get")
LIMIT = [each["name"] for each in openapi(ROUTES)["paths"]["/jobs"]["get"]["parameters"]].index("limit")
SPEC, INFO = ("components", "schemas", "JobSpec"), ("components", "schemas", "Job")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without(*JOB, "delete"), "DELETE /jobs/{id} is gone"),
        (without("paths", "/healthz", "servers"), "GET /healthz has moved"),
        (setting([], *JOBS, "parameters"), "GET /jobs has no parameter limit"),
        (setting(100, *JOBS, "parameters", LIMIT, "schema", "maximum"), "GET /jobs limit has a narrower maximum"),
        (setting(True, *JOBS, "parameters", LIMIT, "required"), "GET /jobs demands limit"),
        (without(*JOB, "put", "responses", "204"), "PUT /jobs/{id} never answers 204"),
        (without(*SPEC, "properties", "tags"), "PUT /jobs/{id} body refuses tags"),
        (setting(["id", "task", "schedule", "name"], *SPEC, "required"), "PUT /jobs/{id} body demands ['name']"),
        (setting({"enum": ["skip"]}, *SPEC, "properties", "overlap"), "body.overlap refuses words that it took"),
        (setting({"type": "integer"}, *SPEC, "properties", "task"), "PUT /jobs/{id} body.task is no string"),
        (without(*INFO, "properties", "state"), "GET /jobs/{id} 200 has no state"),
        (setting({"type": "integer"}, *INFO, "properties", "id"), "GET /jobs/{id} 200.id may be integer"),
    ],
)
def test_a_break_is_seen(change, said):
    """The comparison would be worth nothing if it overlooked one."""
    old = openapi(ROUTES)
    new = deepcopy(old)
    change(new)
    assert [each for each in breaks(old, new) if said in each] != []
    assert breaks(old, deepcopy(old)) == []


if __name__ == "__main__":
    RELEASED.write_text(json.dumps(openapi(ROUTES), indent=1, sort_keys=True) + "\n", "utf-8")
