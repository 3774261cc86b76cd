"""Incidents: what a person should hear of a target, once, whatever becomes of the agent meanwhile."""

import json

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from agent_kit import record_of
from kit import when
from scheduler import Outcome, RunEnded
from uptime_agent.checks.contract.result import CheckResult, Status
from uptime_agent.standing.board import Board
from uptime_agent.standing.flapping import TargetStanding, after
from uptime_agent.standing.incidents import Closed, Incident, Opened, incident_after
from uptime_agent.standing.reading import restore
from uptime_agent.standing.report import MAX_CHARACTERS, report_of
from uptime_agent.standing.status import TargetStatus
from uptime_agent.uptime import past_after

FOUND = {
    "u": CheckResult(status=Status.UP),
    "d": CheckResult(status=Status.DOWN, error="refused"),
    "g": CheckResult(status=Status.DEGRADED, error="slow"),
    "?": CheckResult(status=Status.UNKNOWN, error="no network"),
}


class Life:
    """The life of one target through checks and restarts: what is told, and what history keeps."""

    def __init__(self, name="api", began=1000.0):
        self.name = name
        self.now = began
        self.records = []
        self.told = []
        self.start()

    def start(self):
        """Begin as a new process, which knows what history says: of a long incident, nothing of its beginning."""
        self.board = Board([TargetStatus(self.name, "http://h", "http")])
        restore(self.target, self.records[:1])
        self.board.subscribe(self.hear)

    @property
    def target(self):
        return self.board.targets[self.name]

    def hear(self, news):
        if isinstance(news, (Opened, Closed)):
            self.told.append(news)

    def check(self, letter):
        """Let a check end, and history keep its report as a store does."""
        self.now += 10.0
        report = report_of([FOUND[letter]], self.target)
        run = RunEnded(
            self.name,
            when(self.now - 1),
            when(self.now - 1),
            when(self.now),
            1,
            0.0,
            1.0,
            Outcome.SUCCEEDED,
            results=(report,),
        )
        self.records.insert(0, record_of(run, report))
        self.board.listen(run)

    def live(self, letters):
        """Check once for each letter; a bar is a restart."""
        for letter in letters:
            self.start() if letter == "|" else self.check(letter)
        return self


def told(letters, **options):
    """Say what is told of such a life: + opened, - closed."""
    return "".join("+" if isinstance(each, Opened) else "-" for each in Life(**options).live(letters).told)


@pytest.mark.parametrize(
    ("letters", "news"),
    [
        ("u", ""),
        ("d", "+"),
        ("uuud", "+"),
        ("uuuddd", "+"),
        ("uuudddu", "+-"),
        ("uuudddg", "+-"),
        ("uuud?u", "+"),  # it flaps
        ("uuuduuu", "+-"),
        ("uuuduuud", "+-+"),
        ("ud", "+"),  # it flaps
        ("uddd", "+"),  # and then is down: the same
        ("udddu", "+"),
        ("udududuu", "+"),
        ("udududuuu", "+-"),
        ("?", ""),
        ("u?u?", ""),
        ("uuud???", "+"),
        ("uuuddd?u", "+-"),
        ("uuugu", ""),
    ],
)
def test_an_incident_goes_from_the_first_result_that_is_down_to_the_state_that_is_up(letters, news):
    """A flapping belongs to it, degraded is up, and unknown neither opens nor closes anything."""
    assert told(letters) == news


def test_an_incident_says_what_is_wrong_since_when_and_how_it_ended():
    """Its id is that of the target's state."""
    life = Life().live("uuud")
    (opened,) = life.told
    assert opened == Opened(Incident(life.target.state.id, "api", 1040.0, Status.DOWN, "refused"))
    assert life.board.incidents == [opened.incident]
    life.live("ddg")
    assert life.told[1:] == [Closed(opened.incident, 1070.0, "slow")]
    assert life.board.incidents == []


def test_a_target_that_was_up_so_far_is_down_and_does_not_flap():
    """However young it is. The incident has the id of its state, which is a flapping."""
    life = Life().live("ud")
    (opened,) = life.told
    assert (opened.incident.status, opened.incident.began) == (Status.DOWN, 1020.0)
    assert opened.incident.id == life.target.state.id


def test_an_incident_of_a_flapping_says_so():
    """It began in the middle of one: before that nobody was to be told."""
    state = None
    for number, result in enumerate([TargetStanding.UP, TargetStanding.DOWN, TargetStanding.UP, TargetStanding.DOWN]):
        state = after(state, result, 1_000.0 + number, name="api")
    incident = incident_after(None, state, TargetStanding.DOWN, target="api", now=1_003.0, error="no")
    assert (incident.status, incident.began) == ("flapping", 1_003.0)


@pytest.mark.parametrize(
    ("letters", "word"),
    [
        ("uuud", Status.DOWN),
        ("uuuddd", Status.DOWN),
        ("uuudu", Status.DOWN),  # it may be up for good
        ("uuudud", "flapping"),
        ("uuuduud", "flapping"),
        ("uuududu", "flapping"),
        ("uuududd", "flapping"),  # it has changed, and three have to agree
        ("uuudud|d|d", Status.DOWN),
        ("uuuddddud", Status.DOWN),  # another one
        ("udu", Status.DOWN),
        ("udud", "flapping"),
        ("uuud|u|d", "flapping"),
        ("ud", Status.DOWN),
        ("udd", Status.DOWN),
    ],
)
def test_an_open_incident_says_how_its_target_stands_by_now(letters, word):
    """Down, or flapping: one that began as an outage was told as such for ever."""
    life = Life().live(letters)
    (incident,) = life.board.incidents
    assert incident.status == word
    assert life.target.is_flapping is (word == "flapping")


@given(st.lists(st.sampled_from("ud?g|"), max_size=30).map("".join), st.floats(0, 2e9))
def test_restarts_change_nothing_of_what_is_told(letters, began):
    """The same incidents with the same ids, none opened twice, and what ended while nobody looked closes once."""
    broken, whole = Life(began=began).live(letters), Life(began=began).live(letters.replace("|", ""))
    assert broken.told == whole.told
    assert broken.board.incidents == whole.board.incidents


@given(st.lists(st.sampled_from("ud?g"), max_size=40).map("".join))
def test_opened_and_closed_take_turns_and_no_id_comes_twice(letters):
    """Each closing is of the incident that was opened last."""
    news = Life().live(letters).told
    assert [type(each) for each in news] == [Opened, Closed] * (len(news) // 2) + [Opened] * (len(news) % 2)
    ended = [each.incident.id for each in news[1::2]]
    assert ended == [each.incident.id for each in news[0::2]][: len(news) // 2]
    opened = [each.incident.id for each in news[0::2]]
    assert len(set(opened)) == len(opened)


@given(st.text(min_size=1, max_size=512).filter(str.isprintable), st.text(max_size=400))
def test_an_incident_fits_into_the_report_of_any_target(name, error):
    """However long its name and its error are, and whatever they are made of."""
    life = Life(name)
    result = evolve(FOUND["d"], error=error)
    life.target.record(
        report_of([result], life.target).verdict,
        RunEnded(name, when(0), when(0), when(1.0), 1, 0, 0, Outcome.SUCCEEDED),
    )
    for number in range(100):  # a past as full as it gets
        life.target.past = past_after(life.target.past, list(Status)[number % 4], 2e9 + number * 1e5 / 3, 1e9)
    report = report_of([result] * 16, life.target, cause=error)
    assert len(json.dumps(report)) <= MAX_CHARACTERS
    risen = TargetStatus(name, "http://h", "http")
    restore(risen, [record_of(RunEnded(name, when(1.0), when(1.0), when(2.0), 1, 0, 0, Outcome.SUCCEEDED), report)])
    assert risen.incident.id == life.target.incident.id


GOOD = {"state": "1000-0", "began": 1.0, "status": "down", "error": None, "members": 0}


@pytest.mark.parametrize(
    "incident",
    [5, "x", [], {}, GOOD | {"state": "x"}, GOOD | {"state": "1-2-3"}, GOOD | {"began": -1}, GOOD | {"members": "a"}],
)
def test_an_incident_of_other_hands_does_no_harm(incident):
    """The target begins anew."""
    life = Life().live("u")
    report = dict(report_of([FOUND["u"]], life.target))
    report["before"] = {**report["before"], "incident": incident}
    risen = TargetStatus("api", "http://h", "http")
    assert not restore(risen, [evolve(life.records[0], result=report)])
    assert risen.incident is None
