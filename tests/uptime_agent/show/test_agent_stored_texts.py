"""What others have written into the store, or a server has said, reaches a terminal as text, and costs nothing else."""

import io
import json
import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings, strategies as st
from rich.console import Console

from scheduler import Outcome, Record, Scheduler
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.show.display import Screen
from uptime_agent.show.history import json_line, plain_line
from uptime_agent.show.lines import JsonLines, PlainLines, remembered_text
from uptime_agent.show.monitor import Monitor
from uptime_agent.show.table import draw
from uptime_agent.standing.news import Remembered
from uptime_agent.standing.reading import restore, told
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus
from uptime_agent.text.redact import RedactingFormatter, Redactor

EVIL = "\x1b[2J\x1b]0;owned\x07 \u202eevil\u2028\x9b31m"
CONTROLS = {"\x1b", "\x07", "\u202e", "\u2028", "\x9b", "\x00"}
BEGUN = datetime.fromtimestamp(400, UTC)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from([EVIL, 10**18]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def target():
    """Make a target that has not been checked."""
    return TargetStatus("api", "http://h", "http")


def report(**changes):
    """Make what is stored of a check that found it down, with some of it changed by others."""
    down = CheckResult(status=Status.DOWN, address="127.0.0.2", latency=0.5, error="refused")
    return dict(report_of([down], target())) | changes


def record(result, **changes):
    """Make the record of a check with that result."""
    values = {
        "job_id": "api", "due": BEGUN, "attempt": 1, "outcome": Outcome.SUCCEEDED, "started": BEGUN, "ended": BEGUN,
        "lateness": 0.002, "error": None, "traceback": None, "reason": None, "count": 1, "last_due": BEGUN,
        "result": result,
    }  # fmt: skip
    return Record(**values | changes)


def screens(known):
    """Show a target that has a past in the table, in lines and as JSON."""
    stream = io.StringIO()
    for kind in (PlainLines, JsonLines):
        Monitor(kind(stream, lambda: 1000.0), lambda: None).hear(Remembered(known))
    scheduler = Scheduler()
    scheduler.add(print, "@every 1m", id="api")
    console = Console(file=stream, width=160, height=24)
    console.print(draw(Screen(targets=[known], scheduler=scheduler, now=lambda: 1000.0), 160, 24))
    return stream.getvalue()


EVIL_RESULTS = [
    report(error=EVIL),
    report(results=[{"status": "down", "attempt": 1, "error": EVIL, "address": EVIL}]),
    report(status="up", results=[{"status": "up", "attempt": 1, "detail": {"http_status": EVIL}}]),
    report(status="up", results=[{"status": "up", "attempt": 1, "detail": {EVIL: 1}, "phases": {EVIL: 1.0}}]),
    report(results=[{"status": "up", "attempt": 1, "address": EVIL}] * 2, error=None),
]


@pytest.mark.parametrize("result", EVIL_RESULTS)
def test_a_stored_result_moves_no_cursor(result):
    """In history, in the table, in lines and as JSON. It is shown with escapes."""
    known = target()
    assert restore(known, [record(result)])
    shown = plain_line(record(result)) + json_line(record(result)) + remembered_text(known) + screens(known)
    assert not CONTROLS & set(shown)
    assert r"\x1b[2J" in shown


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CRASHED])
def test_a_stored_error_moves_no_cursor(outcome):
    """Nor does the id of a job that others have made."""
    evil = record(None, outcome=outcome, error=EVIL, job_id=EVIL)
    assert not CONTROLS & set(plain_line(evil) + json_line(evil))


STANDING = report()["before"]
STATE = {"number": 0, "started": 1.0, "status": "up", "up": 1, "down": 0, "flaps": [], "ends": None}


@pytest.mark.parametrize(
    "result",
    [
        report(attempt=10**18), report(attempt=0), report(latency=float("nan")), report(latency=1e308), [[]],
        report(before=STANDING | {"since": 1e15}), report(before=STANDING | {"counts": {"up": 10**5000}}),
        report(before=STANDING | {"changes": -1}), report(before=STANDING | {"state": STATE | {"started": -1e300}}),
        report(results=[{"status": "up", "attempt": 10**18}]), report(results={"a": 1}), report(results="x" * 10**6),
        report(results=[{"status": "up", "attempt": 1, "phases": {"a": 1e308}}]),
    ],
)  # fmt: skip
def test_a_number_that_makes_no_sense_costs_its_record_alone(result):
    """The target stands as the record before it says, and history still has a line for it."""
    known = target()
    assert restore(known, [record(result), record(report())])
    assert known.status is Status.DOWN
    assert known.checks in {1, 2}
    assert plain_line(record(result)).startswith("1970-01-01T00:06:40.000Z")
    assert "Traceback" not in screens(known)


@settings(deadline=None)
@given(JSON, st.sampled_from([*report(), "nothing"]), JSON, st.sampled_from([*STANDING]), JSON)
def test_whatever_is_stored_can_be_shown(whole, key, part, standing_key, standing):
    """Of any JSON, in the place of a report, of one of its parts or of what stood before it."""
    changed = report(**{key: part})
    for result in (whole, changed, report(before=STANDING | {standing_key: standing})):
        known, one = target(), record(result)
        restore(known, [one, one])
        lines = [plain_line(one), json_line(one)] + ([remembered_text(known)] if known.last else [])
        assert not CONTROLS & set("".join(lines))
        assert all("\n" not in line for line in lines)
        json.loads(lines[1])


SECRET = "pa\"ss\\wörd'%2F x"


@pytest.mark.parametrize(
    "echoed",
    [
        SECRET, SECRET.upper(), SECRET.lower(), repr(SECRET), ascii(SECRET), json.dumps(SECRET), json.dumps([SECRET]),
        json.dumps(json.dumps(SECRET)), "pa%22ss%5Cw%C3%B6rd%27%252F%20x", "pa%22ss%5cw%c3%b6rd%27%252f+x",
        "pa&quot;ss\\w&#246;rd&#x27;%2F x", 'pa""ss\\wörd\'%2F x', "PA\\u0022SS\\\\W\\xd6RD\\'%2f\\x20X",
    ],
)  # fmt: skip
def test_a_secret_is_masked_however_it_is_echoed(echoed):
    """With quotes and backslashes, in JSON, as in a URL, in HTML, in other capitals, and what was escaped twice."""
    clean = Redactor([SECRET, "other-secret"]).clean
    shown = clean(f"the server said <{echoed}> and no more")
    assert shown.startswith("the server said <")
    assert shown.endswith("> and no more")
    assert "***" in shown
    assert not any(part in shown.lower() for part in ("pa", "ss", "wörd", "rd"))


@given(st.text(min_size=3), st.text(), st.text())
def test_no_secret_survives_beside_any_text(secret, before, after):
    """As it was given it is masked, whatever stands around it; and a text without one stays as it is."""
    assert secret not in Redactor([secret]).clean(before + secret + after).replace("***", "\0") or secret == "\0" * 3
    assert Redactor(["#never#in#it#"]).clean(before.replace("#", "")) == before.replace("#", "")


def test_history_masks_what_the_configuration_knows_as_a_secret():
    """An error of a defect was stored as it came."""
    clean = Redactor(["hunter22"]).clean
    for result in (None, report(error="said HUNTER22", results=[])):
        one = record(result, outcome=Outcome.FAILED if result is None else Outcome.SUCCEEDED, error="no 'hunter22'")
        assert "hunter22" not in (plain_line(one, clean) + json_line(one, clean)).lower()
    assert told(record(report(error="hunter22")), clean).error == "***"


def fail(text):
    raise ValueError(text)


def test_a_log_moves_no_cursor_and_has_no_lines_of_others():
    """A message is one line; those of a traceback are indented."""
    formatter = RedactingFormatter(Redactor(["hunter22"]), "%(levelname)s %(name)s: %(message)s")
    try:
        fail(f"hunter22 {EVIL}\nERROR scheduler: forged")
    except ValueError as exc:
        failure = (type(exc), exc, exc.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "no\nERROR x: %s", (EVIL,), failure)
    logging.Formatter().format(record)  # as another handler does before
    text = formatter.format(record)
    assert not CONTROLS & set(text)
    assert "hunter22" not in text
    first, *others = text.split("\n")
    assert first.startswith(r"ERROR x: no\nERROR x: \x1b[2J")
    assert all(line.startswith("  ") for line in others)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("result", [report(error=EVIL), report(attempt=10**18)])
async def test_the_command_shows_a_spoilt_store_as_text(ran, config, tmp_path, result):
    """`history` and the next start of the agent, over a real store that somebody else has written to."""
    file, store = config(), tmp_path / "uptime.db"
    await ran("run", file, "--for", "400ms")
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE tick SET result = ?", [json.dumps(result)])
    for command in (["history", "--config", file], ["run", file, "--for", "300ms"]):
        code, out, err = await ran(*command)
        assert (code, err) == (0, "")
        assert not CONTROLS & set(out)
