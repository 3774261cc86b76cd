"""A short run of fleet_chaos.py, and its judge: it finds planted defects, and it finds each thing in what it reads."""

import pytest

import beanstalkd_server
import fleet_chaos
from faked_clock import FAKETIME
from fleet_evidence import Edit, Event, Trouble, read_log
from fleet_judge import judge
from fleet_records import MINUTE, begun, evidence, record

FEW = [
    "--jobs",
    "20",
    "--rate",
    "10",
    "--limit",
    "2",
    "--audits",
    "3",
    "--agents",
    "3",
    "--distances",
    "0",
    "--within",
    "60",
]


@pytest.fixture
def played(postgres_server, postgres_schema, capsys):
    """Play it on the server of these tests; return its status and what it said."""

    def play(*options, number=0):
        given = [*FEW, "--schema", f"{postgres_schema}_{number}", *options]
        return fleet_chaos.main(given, server=postgres_server), capsys.readouterr().out

    return play


@pytest.mark.slow
def test_a_fleet_that_is_troubled_keeps_its_promises(played):
    """So few troubles may be inconclusive (2); what must never be found is a violation (1)."""
    kinds = ["kill", "half_open", "restart", "edit"]
    kinds += [] if beanstalkd_server.why_not(steps=True) else ["broker_loss"]
    status, said = played("--for", "5s", "--seed", "1", "--pace", "1", "--least", "1", "--kinds", *kinds)
    assert status in {0, 2}, said
    assert "violations 0" in said


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("defects", "kind", "found"),
    [
        ("fence,counter", "freeze", ["after its row was gone", "went on at once under a limit of 2"]),
        ("lock", "lose", ["was never begun, and nothing says why"]),
    ],
)
def test_the_judge_finds_planted_defects(played, defects, kind, found):
    """Else it would prove nothing. On a busy machine a trouble may come too late to meet a commit: then once more."""
    missing = set(found)
    for seed in range(1, 9):
        options = ["--for", "1s", "--agents", "2", "--pace", "2", "--seed", str(seed), "--kinds", kind]
        status, said = played(*options, "--defect", defects, number=seed)
        missing -= {words for words in missing if status == 1 and words in said}
        if not missing:
            return
    pytest.fail(f"not found: {missing}\n{said}")


@pytest.mark.parametrize(
    ("kinds", "faketime", "is_logical"),
    [(["kill"], None, False), (["publish", "kill"], None, True), (["server_clock"], FAKETIME, False)],
)
def test_a_server_has_what_its_troubles_need(kinds, faketime, is_logical):
    """And no faked clock besides: its library has crashed a server that did not need it."""
    needed = fleet_chaos.needed_for(kinds)
    assert (needed["faketime"], "wal_level" in needed["settings"]) == (faketime, is_logical)


MINUTES = [begun(due=minute * MINUTE, number=minute + 1) for minute in range(4)]
BOTH = [begun(f"many-1#{part}", due, number=part + due) for due in (0, MINUTE) for part in (1, 2)]
THERE = [begun("once-2", due=due, by=2, process=2, number=due + 1) for due in (0, MINUTE)]
KILLED = Trouble("kill", 1, MINUTE, MINUTE + 9)
LIMITED = [begun(f"limited-{number}", number=number, at=number, by=1 + number % 2) for number in (1, 2, 3)]


@pytest.mark.parametrize(
    "innocent",
    [
        evidence(*MINUTES),
        evidence(MINUTES[0], MINUTES[2], records=[record("once-1", MINUTE)], troubles=[KILLED]),
        evidence(MINUTES[0], MINUTES[3], troubles=[KILLED], records=[
            record("once-1", MINUTE),
            record("once-1", 2 * MINUTE, "missed", last_due=2 * MINUTE, reason="after crash"),
        ]),
        evidence(MINUTES[0], quiet=3 * MINUTE, records=[record("once-1", MINUTE)], quarantined=["once-1"], troubles=[
            KILLED
        ]),
        evidence(begun("again-1"), begun("again-1", attempt=2, by=2, at=5)),
        evidence(MINUTES[0], ended=[], records=[record("once-1", 0)], troubles=[Trouble("kill", 1, 5, 9)]),
        evidence(*LIMITED),
        evidence(*LIMITED, ended=[], records=[record(each.job, 0) for each in LIMITED], troubles=[
            Trouble("kill", 1, 2, 2)
        ]),
        evidence(*LIMITED, ended=[], cut_off=[(each.job, each.due, each.fence, 2) for each in LIMITED[:2]], records=[
            record(each.job, 0, "failed") for each in LIMITED
        ]),
        evidence(begun(due=1_000_000, at=5), troubles=[Trouble("clock", 1, 0, 6)]),
        evidence(MINUTES[0], gone={1: 5}),
        evidence(begun(at=7), gone={1: 5}, troubles=[Trouble("stop", 1, 0, 6)]),
        evidence(begun(at=20_004), gone={1: 5}, troubles=[Trouble("reset", 2, 0, 6)]),
        evidence(*MINUTES, edits=[Edit("remove", "edited-1", 0, 5, 6)]),
        evidence(*BOTH),
        evidence(*BOTH, THERE[0], THERE[1]._replace(at=MINUTE - 9)),
        evidence(*BOTH, *THERE, troubles=[Trouble("clock", 2, 5, 6)]),
        evidence(*BOTH[:2], begun("many-1#1", MINUTE, number=4), begun("many-1#2", MINUTE, by=2, number=5), *THERE),
        evidence(begun("everywhere-1@a"), begun("everywhere-1@a", MINUTE, number=2), names={1: "a"}, quiet=9 * MINUTE),
    ],
)  # fmt: skip
def test_what_is_as_it_should_be_is_no_violation(innocent):
    """Each of these has its explanation."""
    assert list(judge(innocent)) == []


@pytest.mark.parametrize(
    ("guilty", "words"),
    [
        (evidence(MINUTES[0], begun(by=2, at=5)), "twice: once-1 due 0 was begun by 1 and by 2"),
        (evidence(begun("again-1"), begun("again-1", at=5)), "twice: again-1 due 0: attempt 1 of 1 came after 1"),
        (evidence(MINUTES[0], MINUTES[2]), f"unexplained: once-1 due {MINUTE} "),
        (evidence(MINUTES[0], MINUTES[2], records=[record("once-1", MINUTE, "running")]), "unexplained: once-1"),
        (evidence(MINUTES[0], MINUTES[2], records=[record("once-1", MINUTE, "missed", reason="late")]), "unexplained"),
        (evidence(MINUTES[0], quiet=2 * MINUTE), "unexplained"),
        (
            evidence(MINUTES[0], MINUTES[3], records=[record("once-1", minute * MINUTE) for minute in (1, 2)]),
            "unexplained: 2 ticks that 1 had marked were not begun, which is more than a batch",
        ),
        (evidence(MINUTES[0], ended=[]), "unended: once-1 due 0, begun by 1, never ended, and nobody killed it"),
        (evidence(MINUTES[0], ended=[], troubles=[Trouble("kill", 1, 5, 9)]), "unended: once-1 due 0 was cut off"),
        (
            evidence(MINUTES[0], ended=[], cut_off=[("once-1", 0, MINUTES[0].fence, 5)]),
            "unended: once-1 due 0 was cut off by 1 itself, and no record says so",
        ),
        (
            evidence(begun(due=2_000_000, at=5), troubles=[Trouble("clock", 1, 0, 6)]),
            "early: once-1 due 2000000 was begun 2.000 s early",
        ),
        (
            evidence(*LIMITED, ended=[(each.job, each.due, each.fence, 9) for each in LIMITED]),
            "limit: 3 went on at once under a limit of 2",
        ),
        (evidence(begun(at=7), gone={1: 5}), "buried: once-1 due 0 was begun by 1 0.000 s after its row was gone"),
        (evidence(begun(at=30_000), gone={1: 5}, troubles=[Trouble("reset", 1, 0, 6)]), "buried: once-1 due 0"),
        (evidence(begun(at=7), gone={1: 5}, troubles=[Trouble("server_clock", 1, 0, 6)]), "buried: once-1 due 0"),
        (evidence(begun(due=10_000, at=5)), "early: once-1 due 10000 was begun 0.010 s early"),
        (
            evidence(begun("edited-1", due=MINUTE), edits=[Edit("remove", "edited-1", 0, 5, 6)]),
            "edited: edited-1 was begun 60.0 s after remove",
        ),
        (
            evidence(begun("queued_edited-1", due=MINUTE), edits=[Edit("remove", "queued_edited-1", 0, 5, 6)]),
            "edited: queued_edited-1 was begun 60.0 s after remove",
        ),
        (
            evidence(*MINUTES, edits=[Edit("add", "edited-1", MINUTE // 2, 5, 6)]),
            "edited: edited-1 did not begin within 180.0 s of add",
        ),
        (evidence(*BOTH, *THERE), "parts: both parts of many-1 were begun by 1 for 60.0 s beside [2]"),
        (evidence(begun("many-1#1"), begun("many-1#1", by=2, at=5)), "twice: many-1#1 due 0"),
        (evidence(begun("many-1#1")), "unexplained: many-1#2 due 0 "),
        (evidence(BOTH[0], *BOTH[2:]), "unexplained: many-1#2 due 0 "),
        (evidence(begun("many-1#1"), begun("many-1#1", 2 * MINUTE, number=2)), f"unexplained: many-1#1 due {MINUTE} "),
        (evidence(begun("everywhere-1@b"), names={1: "a"}), "parts: everywhere-1@b due 0 was begun by a"),
        (
            evidence(begun("everywhere-1@a"), begun("everywhere-1@a", 2 * MINUTE, number=2), names={1: "a"}),
            "unexplained: everywhere-1@a due",
        ),
    ],
)
def test_what_is_wrong_is_found(guilty, words):
    """One thing at a time."""
    assert [each for each in judge(guilty) if words in each], list(judge(guilty))


def test_a_log_is_read(tmp_path):
    """As the agents write it."""
    (tmp_path / "log").write_text(
        f"b once-1 5 1 {7 << 32} 6\ne once-1 5 1 {7 << 32} 9\nc once-2 5 1 {7 << 32} 9\nx lost 9\n"
    )
    (run,), ends, cut_off, events = read_log(tmp_path / "log", 3)
    assert (run.job, run.due, run.incarnation, run.at, run.process) == ("once-1", 5, 7, 6, 3)
    assert ends == [("once-1", 5, 7 << 32, 9)]
    assert cut_off == [("once-2", 5, 7 << 32, 9)]
    assert events == [Event("lost", 9, 3)]
