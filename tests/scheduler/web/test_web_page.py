"""The program of docs/control-api.md: what a reader copies does what the page says."""

import re
from pathlib import Path

import pytest

from asgi import Caller

PAGE = Path(__file__).resolve().parents[3] / "docs" / "control-api.md"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Carry the first program out in an empty folder."""
    monkeypatch.chdir(tmp_path)
    found = {"__name__": "program"}
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), found)
    return found


async def test_the_program_of_the_page(program, capsys):
    """From an empty folder: a job put, run, paused, changed, listed and removed."""
    app, s = program["program"], program["s"]
    ann = Caller(app, headers={"authorization": "Bearer change-me"})
    dashboard = Caller(app, headers={"authorization": "Bearer me-too"})
    async with app.router.lifespan_context(app):
        body = {"task": "greet", "schedule": "@every 10s", "args": ["world"]}
        assert (await ann.put("/control/v1/jobs/hello", body)).status == 201
        assert (await ann.post("/control/v1/jobs/hello/run")).status == 202
        await s.get("hello").run_now()
        assert "hello world" in capsys.readouterr().out
        assert (await ann.post("/control/v1/jobs/hello/pause", {"reason": "lunch"})).status == 204
        listed = (await dashboard.get("/control/v1/jobs?state=disabled")).json["jobs"]
        assert [each["pauses"][0]["reason"] for each in listed] == ["lunch"]
        assert (await ann.patch("/control/v1/jobs/hello", {"timeout": "5s"})).json["spec"]["timeout"] == 5
        assert (await dashboard.delete("/control/v1/jobs/hello")).status == 403
        assert (await Caller(app).get("/control/v1/jobs")).status == 401
        runs = (await ann.get("/control/v1/jobs/hello/runs")).json["runs"]
        assert {each["outcome"] for each in runs} == {"succeeded"}
        assert (await ann.delete("/control/v1/jobs/hello")).status == 204
        assert (await dashboard.get("/control/v1/summary")).json["jobs"] == 0


def test_the_page_names_each_route():
    """A route that is not on the page is one that no reader finds."""
    from scheduler.web._routes import ROUTES  # noqa: PLC0415 - of this test only

    text = PAGE.read_text("utf-8")
    for route in ROUTES:
        last = "/" + route.path.rsplit("/", 1)[-1]
        assert route.path in text or last in text, route.path
