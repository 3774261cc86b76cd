"""Reloads of a file, writes over the API, restarts and kills in any order: no job loses its owner, nothing is lost."""

import tempfile

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kit import examples
from steered_life import CODE, FILE, Life

IDS = st.sampled_from(["a", "b", "c/ä", "d"])
HOURS = st.integers(1, 3)
SETS = st.dictionaries(IDS, HOURS, max_size=4)
API, CMDB = "api", "cmdb"


def path_of(id, act=""):
    """Return the path of a job."""
    return f"/v1/jobs/{id.replace('/', '%2F').replace('ä', '%C3%A4').replace(' ', '%20')}{act}"


def body_of(hours):
    """Return the body that puts a job."""
    return {"task": "nothing", "schedule": f"@every {hours}h", "args": [hours]}


class Steered(RuleBasedStateMachine):
    """`jobs`: what each acknowledged change has led to: (owner, hours, whether it is paused) by id."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.life = Life(self.folder.name)
        self.jobs = {}

    def take(self, owner, wanted):
        """Make these the owner's jobs, unless another one has an id of them."""
        if any(id in self.jobs and self.jobs[id][0] != owner for id in wanted):
            return False
        for id in [id for id, (other, *_) in self.jobs.items() if other == owner and id not in wanted]:
            del self.jobs[id]
        self.put_all(owner, wanted)
        return True

    def put_all(self, owner, wanted):
        """Add and change jobs; a changed one keeps its pause."""
        for id, hours in wanted.items():
            self.jobs[id] = (owner, hours, id in self.jobs and self.jobs[id][2])

    @rule(jobs=SETS)
    def reload(self, jobs):
        """The file has other jobs."""
        assert self.life.reload(jobs) == self.take(FILE, jobs)

    @rule(jobs=SETS)
    def put_set(self, jobs):
        """A client puts all of its jobs."""
        body = {"jobs": [{"id": id, **body_of(hours)} for id, hours in jobs.items()]}
        assert self.life.ask("PUT", f"/v1/sets/{CMDB}", body) == (200 if self.take(CMDB, jobs) else 409)

    @rule(id=IDS, hours=HOURS)
    def put(self, id, hours):
        """A client puts one job."""
        before = self.jobs.get(id)
        expected = {201} if before is None else {200, 204} if before[0] == API else {409}
        assert self.life.ask("PUT", path_of(id), body_of(hours)) in expected
        if 409 not in expected:
            self.put_all(API, {id: hours})

    @rule(id=IDS)
    def delete(self, id):
        """A client removes a job."""
        before = self.jobs.get(id)
        expected = 404 if before is None else 204 if before[0] == API else 409
        assert self.life.ask("DELETE", path_of(id)) == expected
        if expected == 204:
            del self.jobs[id]

    @rule(id=IDS, is_paused=st.booleans())
    def pause_or_resume(self, id, is_paused):
        """An operator pauses a job of any owner, or lets it go on."""
        status = self.life.ask("POST", path_of(id, "/pause" if is_paused else "/resume"))
        assert status == (204 if id in self.jobs else 404)
        if id in self.jobs:
            self.jobs[id] = (*self.jobs[id][:2], is_paused)

    @rule()
    def take_from_code(self):
        """Nobody gets the job of code."""
        assert self.life.ask("PUT", path_of(CODE), body_of(1)) == 409
        assert self.life.ask("DELETE", path_of(CODE)) == 409
        assert not self.life.reload({CODE: 1})

    @rule()
    def restart(self):
        """The process ends in order."""
        self.life.restart()

    @rule()
    def kill(self):
        """The process is killed."""
        self.life.kill()

    @rule(id=IDS, hours=HOURS)
    def kill_during_a_put(self, id, hours):
        """A request is under way: it is carried out or not, and nothing in between."""
        before = dict(self.jobs)
        self.life.kill(("PUT", path_of(id), body_of(hours)))
        if self.jobs.get(id, (API,))[0] == API and self.life.found() != before:
            self.put_all(API, {id: hours})

    @invariant()
    def all_is_as_acknowledged(self):
        """Each job is there, once, with its one owner."""
        assert self.life.found() == self.jobs

    def teardown(self):
        """What came over the API is the same set after an export."""
        try:
            assert all(self.life.exports_the_same(owner) for owner in (API, CMDB, FILE))
            self.life.restart()
            assert self.life.found() == self.jobs
        finally:
            self.life.end()
            self.folder.cleanup()


def play(number):
    """Run so many interleavings."""
    health = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    run_state_machine_as_test(
        Steered, settings=settings(max_examples=number, stateful_step_count=20, suppress_health_check=health)
    )


def test_writers_of_all_kinds_share_a_scheduler():
    """A few interleavings."""
    play(examples(50))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_writers_of_all_kinds_share_a_scheduler_for_long():
    """Three hundred; with HYPOTHESIS_PROFILE=thorough many more."""
    play(examples(300))
