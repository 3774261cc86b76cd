"""What is shown of verdicts: lines, JSON and the table."""

import io
import json
import os
import sys

import pytest
from attrs import evolve
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.console import Console

from kit import when
from scheduler import Audit, MissedReason, Outcome, RunEnded, RunMissed, Scheduler
from timerqueue.testing import ManualClock
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.show.display import Screen
from uptime_agent.show.keys import Keyboard, ShownPart, keys_in
from uptime_agent.show.lines import JsonLines, PlainLines
from uptime_agent.show.monitor import Monitor
from uptime_agent.show.notices import LeftOutWords
from uptime_agent.show.table import LiveTable, draw
from uptime_agent.standing.board import Board, Summary
from uptime_agent.standing.report import report_of, verdict_of
from uptime_agent.standing.status import TargetStatus, fold

if sys.platform != "win32":
    import termios

UP = CheckResult(
    status=Status.UP, address="127.0.0.1", latency=0.004, phases={"connect": 0.001}, detail={"http_status": 200}
)
DOWN = CheckResult(status=Status.DOWN, address="127.0.0.2", latency=0.5, error="refused")
SLOW = CheckResult(status=Status.DEGRADED, address="127.0.0.3", latency=2.0, error="slow")
LOST = CheckResult(status=Status.UNKNOWN, address="::1", error="no route")


def target(name="api"):
    """Make a target that has not been checked."""
    return TargetStatus(name, "http://h", "http")


def ended(*results, outcome=Outcome.SUCCEEDED, name="api", error=None, ended_at=1000.0):
    """Make the end of a run."""
    found = (report_of(results, target(name)),)
    return RunEnded(
        name, when(ended_at - 1), when(ended_at - 0.5), when(ended_at), 1, 0.0005, 0.5, outcome, error, None, found
    )


def shown(kind, *events, names=("api",)):
    """Let a display show some events; return its lines."""
    stream = io.StringIO()
    board, monitor = Board(map(target, names)), Monitor(kind(stream, lambda: 1000.0), lambda: None)
    board.subscribe(monitor.hear)
    for event in events:
        board.listen(event)
    monitor.show(lambda display: display.stopped(board.summary()))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("results", "status", "error", "latency"),
    [
        ([UP], Status.UP, None, 0.004),
        ([DOWN], Status.DOWN, "refused", 0.5),
        ([UP, UP], Status.UP, None, 0.004),
        ([UP, DOWN], Status.DEGRADED, "1 of 2 addresses: refused", 0.5),
        ([UP, SLOW], Status.DEGRADED, "1 of 2 addresses: slow", 2.0),
        ([DOWN, SLOW], Status.DEGRADED, "2 of 2 addresses: refused", 2.0),
        ([DOWN, DOWN], Status.DOWN, "2 of 2 addresses: refused", 0.5),
        ([UP, LOST], Status.UP, None, 0.004),
        ([DOWN, LOST], Status.DOWN, "2 of 2 addresses: refused", 0.5),
        ([LOST, LOST], Status.UNKNOWN, "no route", None),
    ],
)
def test_results_fold_into_a_verdict(results, status, error, latency):
    """All up: up. Some up: degraded. None up: down. What we do not know does not count."""
    verdict = fold(results)
    assert (verdict.status, verdict.error, verdict.latency) == (status, error, latency)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.SUCCEEDED, Status.UP),
        (Outcome.FAILED, Status.UNKNOWN),
        (Outcome.CRASHED, None),
        (Outcome.TIMED_OUT, Status.UNKNOWN),
        (Outcome.CANCELLED, None),
        (Outcome.MISSED, None),
    ],
)
def test_a_run_that_ended_otherwise_is_not_the_targets_fault(outcome, status):
    """Our own failure is unknown, and a run that was cut off says nothing."""
    verdict = verdict_of(ended(UP, outcome=outcome))
    assert (verdict and verdict.status) == status


def test_a_status_counts_and_remembers_since_when():
    """Only another status is a change, and the first is one."""
    known = target()
    runs = [(UP, 10.0), (UP, 20.0), (DOWN, 30.0), (DOWN, 40.0), (UP, 50.0)]
    changes = [known.record(fold([result]), ended(result, ended_at=at)) for result, at in runs]
    assert changes == [True, False, True, False, True]
    assert (known.status, known.since, known.changes, known.checks) == (Status.UP, 50.0, 2, 5)
    assert known.counts == {Status.UP: 3, Status.DOWN: 2}


def test_plain_lines_can_each_be_read_alone():
    """Time, change, target, what was found, how long it took, how late it started."""
    lines = shown(PlainLines, ended(UP), ended(UP), ended(DOWN), ended(UP, DOWN))
    at = "1970-01-01T00:16:40.000Z"
    assert lines[:4] == [
        f"{at}  -> UP             api  status 200 in 4.0 ms (connect 1.0 ms)  started 0.5 ms late",
        f"{at}  UP                api  status 200 in 4.0 ms (connect 1.0 ms)  started 0.5 ms late",
        f"{at}  UP -> DOWN        api  refused, after 500 ms  started 0.5 ms late",
        f"{at}  DOWN -> DEGRADED  api  1 of 2 addresses: refused, after 500 ms  started 0.5 ms late",
    ]
    assert lines[4].endswith("4 checks; targets: 1 degraded; started at most 0.5 ms late, 0 missed")


def test_missed_checks_are_shown():
    """Nothing that did not take place goes unsaid."""
    (line, end) = shown(PlainLines, RunMissed("api", when(5.0), when(9.0), 3, MissedReason.OVERLAP))
    assert line.endswith("MISSED            api  3 checks due from 1970-01-01T00:00:05.000Z left out: overlap")
    assert "3 missed" in end


def test_missed_checks_that_nobody_counted_are_at_least_so_many():
    """Of a union of schedules, say: there may have been more."""
    event = RunMissed("api", when(5.0), when(9.0), 3, MissedReason.OVERLAP, False)
    (line, end) = shown(PlainLines, event)
    assert line.endswith("api  at least 3 checks due from 1970-01-01T00:00:05.000Z left out: overlap")
    assert "at least 3 missed" in end
    missed, stopped = map(json.loads, shown(JsonLines, event))
    assert (missed["count"], missed["is_exact"]) == (3, False)
    assert (stopped["missed"], stopped["missed_is_exact"]) == (3, False)


def test_what_an_end_leaves_out_is_counted_only():
    """Thousands of checks may wait for room when Ctrl-C comes; they are no news."""
    (end,) = shown(PlainLines, RunMissed("api", when(5.0), when(9.0), 3, MissedReason.STOPPED))
    assert "3 missed" in end


def test_json_lines_hold_everything():
    """One object per event, with stable keys."""
    check, missed, stopped = map(
        json.loads, shown(JsonLines, ended(UP, DOWN), RunMissed("api", when(5.0), when(9.0), 3, MissedReason.OVERLAP))
    )
    assert check["event"] == "check"
    assert (check["name"], check["type"], check["status"], check["previous"]) == ("api", "http", "degraded", None)
    assert (check["changed"], check["latency_ms"], check["lateness_ms"]) == (True, 500.0, 0.5)
    assert check["results"][0] == {
        "address": "127.0.0.1",
        "status": "up",
        "latency_ms": 4.0,
        "phases_ms": {"connect": 1.0},
        "error": None,
        "detail": {"http_status": 200},
        "attempt": 1,
    }
    assert (check["attempt"], check["max_attempts"]) == (1, 1)
    assert (missed["event"], missed["count"], missed["reason"]) == ("missed", 3, "overlap")
    assert (stopped["event"], stopped["targets"], stopped["missed"]) == ("stopped", {"degraded": 1}, 3)


def test_names_from_outside_stay_on_their_line():
    """A name with a line break cannot fake a line."""
    lines = shown(PlainLines, ended(UP, name="a\nb"), names=["a\nb"])
    assert len(lines) == 2
    assert r"a\nb" in lines[0]


def test_a_reader_who_leaves_ends_the_run():
    """As with `| head`: the monitor asks for a stop, once, and shows nothing more."""

    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    left = []
    board, monitor = Board([target()]), Monitor(PlainLines(Closed(), lambda: 0.0), lambda: left.append(1))
    board.subscribe(monitor.hear)
    board.listen(ended(UP))
    board.listen(ended(UP))
    assert left == [1]
    assert board.targets["api"].checks == 2


@pytest.fixture
def view():
    """A view of three targets, of which the last has a name that is no markup."""
    scheduler = Scheduler(limits={"http": 5})
    targets = [target(name) for name in ("api", "shop", "[red]new")]
    for each in targets:
        scheduler.add(print, "@every 1m", id=each.name)
    targets[0].record(fold([UP]), ended(UP))
    targets[1].record(fold([DOWN]), ended(DOWN))
    return Screen(targets=targets, scheduler=scheduler, now=lambda: 1065.0)


def drawn(view, width, height):
    """Draw the table; return its lines."""
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(draw(view, width, height))
    return console.file.getvalue().splitlines()


def test_the_table_shows_what_is_not_well_first(view):
    """Then what is up, then what waits for its first check."""
    head, *rows = drawn(view, 140, 24)
    assert head.split() == "name state since latency result phases, ms next late checks down".split()
    assert [row.split()[0] for row in rows[:3]] == ["shop", "api", "[red]new"]
    assert "DOWN" in rows[0]
    assert "refused" in rows[0]
    assert "1m05s" in rows[1]
    assert "waiting" in rows[2]
    assert "1 up  1 down  1 waiting for the first check" in rows[3]
    assert "http 0/5" in rows[4]


@pytest.mark.parametrize("width", [20, 40, 79, 80, 139, 140, 200])
def test_the_table_fits_its_terminal(view, width):
    """Narrow ones lose columns, not their shape."""
    lines = drawn(view, width, 24)
    assert all(len(line) <= width for line in lines)
    assert len([line for line in lines if line.startswith(("sh", "api", "ap"))]) == 2


def test_the_table_says_when_audits_fail_or_stay_away(view):
    """With the job that was well longest ago. Where nothing is wrong there is nothing of audits."""
    watchdog = view.scheduler._watchdog
    watchdog._interval = 300.0

    def foot(at, *failing, oldest=None):
        watchdog._last, watchdog._failing, watchdog._oldest = Audit(at=at, interval=300.0), failing, oldest
        return drawn(view, 140, 24)[-2]

    assert foot(166.0) == foot(1065.0)
    assert foot(164.0).endswith("no audit for 15m01s")
    assert foot(1065.0, "api", "shop", oldest=("api", 165.0)).endswith(
        "2 jobs cannot be started; api was last well 15m00s ago"
    )
    assert foot(1065.0, "api", oldest=("api", None)).endswith("1 job cannot be started; api was last well never")


WHY = [
    "status 503, expected 200-399",
    "connection refused by 192.0.2.7:5432",
    "no answer from 192.0.2.9:443 within 10 s (first byte)",
    "cannot look up db.example: this machine is offline: it can look up neither db.example nor shop.example, " * 2,
    "東京" * 60,
]


def unwrapped(lines):
    """The text of lines, whatever they were broken at."""
    return "".join("".join(lines).split())


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 140])
@pytest.mark.parametrize("status", [Status.DOWN, Status.DEGRADED, Status.UNKNOWN])
def test_why_something_is_not_well_is_not_cut(view, status, width):
    """Where the column has no room for it, it stands below its row; other rows keep their shape."""
    for why in WHY:
        found = CheckResult(status=status, latency=0.5, error=why)
        view.targets[1].record(fold([found]), ended(found))
        lines = drawn(view, width, 24)
        assert all(cell_len(line) <= width for line in lines)
        assert "".join(why.split()) in unwrapped(lines[1:])
        assert [line.split()[0] for line in lines if line.startswith(("shop", "api", "[red]"))] == [
            "shop",
            "api",
            "[red]new",
        ]


def test_a_short_reason_stands_in_its_row(view):
    """A row takes a line where that is enough."""
    (row,) = (line for line in drawn(view, 80, 24) if line.startswith("shop"))
    assert row.split()[:6] == ["shop", "DOWN", "1m05s", "500", "ms", "refused"]


@pytest.mark.parametrize(("height", "reasons"), [(7, 0), (8, 1), (9, 1), (10, 2), (12, 2)])
def test_a_low_terminal_leaves_out_targets_before_reasons(view, height, reasons):
    """Two lines are the least in which a target has its reason."""
    found = CheckResult(status=Status.DOWN, error=WHY[2])
    view.targets[1].record(fold([found]), ended(found))
    view.targets[0].record(fold([found]), ended(found))
    lines = drawn(view, 80, height)
    assert len(lines) <= height
    assert sum(line.startswith(("shop", "api")) for line in lines) == max(reasons, 1)
    assert sum(WHY[2] in line for line in lines) == reasons


@pytest.mark.parametrize("width", [80, 100])
def test_the_last_line_is_cut_where_it_matters_least(view, width):
    """How to stop it is in it."""
    assert "Ctrl-C stops" in drawn(view, width, 24)[-1]


HOSTS = ["http://127.0.0.1:{port}/health", "https://eu-{port}.monitoring.example.org/v1/health", "東京{port}" * 20]
URLS = [text.format(port=port) for text in HOSTS for port in (1, 2)]
URLS += ["https://eu-1.monitoring.example.org/v1/orders", "https://eu-1.monitoring.example.org/v1/baskets"]


@pytest.mark.parametrize("width", [80, 100, 120, 139, 140, 160])
def test_different_targets_look_different(width):
    """Names are cut in their middle and not before they must be, and other columns get what they leave."""
    clock = ManualClock()
    scheduler = Scheduler(clock=clock)
    for url in URLS:
        scheduler.add(print, "@every 1m", id=url)
    targets = [TargetStatus(url, url, "http") for url in URLS]
    lines = drawn(Screen(targets=targets, scheduler=scheduler, now=clock.wall), width, 24)
    assert all(cell_len(line) <= width for line in lines)
    assert len({line.split()[0] for line in lines[1 : len(URLS) + 1]}) == len(URLS)
    assert any(line.startswith("http://127.0.0.1:1/health ") for line in lines)


def test_names_come_before_phases(view):
    """A column of which one can do without does not cut them."""
    long = TargetStatus("x" * 60, "http://h", "http")
    view.scheduler.add(print, "@every 1m", id=long.name)
    assert "phases" in drawn(view, 140, 24)[0]
    lines = drawn(evolve(view, targets=[*view.targets, long]), 140, 24)
    assert "phases" not in lines[0]
    assert any(line.startswith(long.name) for line in lines)


def test_a_low_terminal_says_what_it_leaves_out(view):
    """The rest is counted."""
    lines = drawn(view, 100, 8)
    assert any("and 1 more" in line for line in lines)
    assert not any("[red]new" in line for line in lines)


def test_a_target_that_flaps_or_is_paused_is_not_shown_as_down(view):
    """Nobody knows how it is while nobody checks it; and one that is up half of the time is not down."""
    api, shop, _ = view.targets
    for each in (DOWN, UP, DOWN):
        shop.record(fold([each]), ended(each))
    api.record(fold([DOWN]), ended(DOWN))
    view.scheduler.get("api").pause("deploy")
    rows = {line.split()[0]: line for line in drawn(view, 140, 24)[1:]}
    assert "FLAPPING" in rows["shop"]
    assert "PAUSED" in rows["api"]
    assert "deploy; was down" in rows["api"]
    assert "DOWN" not in rows["api"]


MANY = 60


@pytest.fixture
def many():
    """A view of more targets than a terminal has lines."""
    scheduler = Scheduler()
    targets = [target(f"{kind}-{number}") for number in range(MANY // 2) for kind in ("web", "db")]
    for each in targets:
        scheduler.add(print, "@every 1m", id=each.name)
        each.record(fold([UP]), ended(UP))
    return Screen(targets=targets, scheduler=scheduler, now=lambda: 1065.0)


@pytest.mark.parametrize(
    ("keys", "first", "rows", "said"),
    [
        ("", "web-0", 10, "and 50 more (j k scroll, / filters)"),
        ("j", "db-0", 10, "2 to 11 of 60"),
        ("jj\x1b[B\x1b[A", "web-1", 10, "3 to 12 of 60"),
        (" ", "web-5", 10, "11 to 20 of 60"),
        (" b", "web-0", 10, "and 50 more"),
        ("G", "web-25", 10, "51 to 60 of 60"),
        ("Gg", "web-0", 10, "and 50 more"),
        ("k" * 9, "web-0", 10, "and 50 more"),
        ("/db-1\n", "db-1", 10, "1 to 10 of 11 with 'db-1'"),
        ("/db-1", "db-1", 10, "1 to 10 of 11 with 'db-1' (Enter, Escape)"),
        ("/db-11\x7f\nj", "db-10", 10, "2 to 11 of 11 with 'db-1'"),
        ("/DB-29\n", "db-29", 1, "1 to 1 of 1 with 'DB-29'"),
        ("/down\n", None, 0, "none with 'down'"),
        ("/db\n\x1b", "web-0", 10, "and 50 more"),
        ("/j\x1b", "web-0", 10, "and 50 more"),
        ("\x1b[99;1~x\0", "web-0", 10, "and 50 more"),
    ],
)
def test_keys_say_which_part_of_a_table_is_shown(many, keys, first, rows, said):
    """A table of 5,000 targets in a terminal of 40 lines showed the first thirty of them, and nothing else."""
    part = ShownPart()
    for key in keys_in(keys):
        part.press(key, 10)
    console = Console(file=io.StringIO(), width=140, height=16)
    console.print(draw(many, 140, 16, part))
    lines = console.file.getvalue().splitlines()
    names = [line.split()[0] for line in lines if line.startswith(("web-", "db-"))]
    assert (names[:1], len(names)) == ([] if first is None else [first], rows)
    assert said in lines[-2]


@given(st.lists(st.text() | st.sampled_from(["j", "k", " ", "b", "g", "G", "/", "\n", "\x7f", "\x1b", "\x1b[A"])))
def test_whatever_is_typed_a_table_can_be_drawn(pressed):
    """A part lies within the rows."""
    part = ShownPart()
    for key in keys_in("".join(pressed)):
        part.press(key, 10)
        assert 0 <= part.start(25, 10) < 25
        assert part.start(0, 10) == 0


@pytest.mark.parametrize("missing", ["termios", "tty"])
def test_a_system_without_terminals_of_posix_has_no_keys(monkeypatch, missing):
    """Such as Windows. The table is shown all the same."""
    monkeypatch.setitem(sys.modules, missing, None)
    keyboard = Keyboard(io.StringIO())
    assert not keyboard.begin()
    assert list(keyboard.pressed()) == []
    keyboard.end()


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of POSIX")
def test_keys_of_a_terminal_scroll_the_live_table_and_are_not_echoed(many):
    """The terminal is afterwards as it was."""
    terminal, other = os.openpty()
    try:
        before = termios.tcgetattr(other)
        stream = io.StringIO()
        with open(other, closefd=False) as keys:
            console = Console(file=stream, width=140, height=16, force_terminal=True, color_system=None)
            table = LiveTable(console, keys)
            table.started(many)
            os.write(terminal, b"/db-29\n")
            table.refresh()
            assert "1 to 1 of 1 with 'db-29'" in stream.getvalue()
            assert not termios.tcgetattr(other)[3] & termios.ECHO
            table.stopped(Summary(seconds=5, checks=2, targets={}, missed=0, lateness_max=0.001, cut_off=0))
        assert termios.tcgetattr(other) == before
    finally:
        os.close(terminal)
        os.close(other)


def test_checks_that_a_store_did_not_record_in_time_are_told_together():
    """A full disk had a line for each check, twice a second for each target."""
    words = LeftOutWords()
    missed = [
        RunMissed(name, when(at), when(at), 2, MissedReason.STORE)
        for at in (1000.0, 1001.0, 1059.0, 1060.0)
        for name in ("api", "shop")
    ]
    told = [words.of(event.job_id, event) for event in missed]
    assert [each for each in told if each is not None] == [
        ("2 checks of 1 target", "left out: the store did not record their starts in time"),
        ("12 checks of 2 targets", "left out: the store did not record their starts in time"),
    ]


def test_the_live_table_leaves_its_last_state_on_the_screen(view):
    """After the end one can still read how it stood."""
    stream = io.StringIO()
    table = LiveTable(Console(file=stream, width=100, height=24, force_terminal=True, color_system=None))
    table.started(view)
    table.notice("a notice\x1b[2J")
    table.checked(view.targets[1], is_change=True)
    table.stopped(Summary(seconds=5, checks=2, targets={Status.UP: 1}, missed=0, lateness_max=0.001, cut_off=1))
    text = stream.getvalue()
    assert r"a notice\x1b[2J" in text
    assert text.rstrip().endswith(
        "stopped after 5s: 2 checks; targets: 1 up; started at most 1.0 ms late, 0 missed; 1 check cut off"
    )


def test_a_display_may_go_while_it_is_told_of_the_end():
    """That does not reach the scheduler."""

    class Gone:
        refresh_every = None

        def notice(self, text):
            raise BrokenPipeError

    monitor = Monitor(Gone(), lambda: None)
    monitor.notice("x")
    assert monitor.refresh_every is None
