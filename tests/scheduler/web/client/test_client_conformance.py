"""The same verbs give the same answers over a scheduler in this process and over a client of its API."""

import functools
import threading
from datetime import UTC, datetime, timedelta

import pytest
from anyio.to_thread import run_sync

from kit import wait_until
from scheduler import (
    AlreadyStopped,
    DuplicateJob,
    InvalidJob,
    JobNotFound,
    JobSpec,
    JobState,
    LifecycleError,
    MissedReason,
    Outcome,
    Overlap,
    Retry,
    ScheduleError,
    UnknownLimit,
    UnknownTask,
    WrongOwner,
    fleet,
    rate,
    to_json,
)


def in_a_thread(test):
    """Run the body of a test in a thread: the loop of the scheduler goes on."""

    @functools.wraps(test)
    async def run(**fixtures):
        await run_sync(functools.partial(test, **fixtures))

    return run


def in_hours(hours):
    """Return an instant to come."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(hours=hours)


OPTIONS = {
    "args": ["https://example.org/ä", 3],
    "kwargs": {"deep": {"a": [1, None, True]}},
    "needs": {"http": 2},
    "priority": 2.5,
    "timeout": "1m",
    "retry": Retry.exponential("1s", cap="1m", max_retries=3),
    "overlap": "allow",
    "missed": "skip",
    "grace": "3s",
    "delivery": "at_least_once",
    "tags": ["b", "a"],
    "name": "the job",
}


@in_a_thread
def test_a_definition_reads_back(w):
    """Each option of `add` is a property of the job, and its spec is equal to what `add` took."""
    job = w.add("nothing", "@every 90s", id="a/b ä?", **OPTIONS)
    expected = JobSpec("a/b ä?", "nothing", "@every 1m30s", owner="api", **OPTIONS)
    w.settle()
    for each in (job, w.s.get("a/b ä?"), *w.s.jobs()):
        assert each.spec == expected
        assert (each.id, each.name, each.tags, each.owner) == ("a/b ä?", "the job", {"a", "b"}, "api")
        assert (each.needs, each.priority, each.timeout) == ({"http": 2}, 2.5, timedelta(minutes=1))
        assert (each.overlap, each.retry, each.args) == (Overlap.ALLOW, OPTIONS["retry"], tuple(OPTIONS["args"]))
        assert dict(each.kwargs) == OPTIONS["kwargs"]
        assert (each.missed.value, each.delivery.value) == ("skip", "at_least_once")
    assert to_json(job)["spec"] == to_json(expected)


@in_a_thread
def test_a_job_tells_how_it_stands(w):
    """Its state, its next start and its counts."""
    job = w.add("nothing", "@every 1h", id="a")
    w.settle()
    info = job.info()
    assert (info.state, info.error, info.pauses, info.is_ours, info.node) == (JobState.SCHEDULED, None, (), True, None)
    assert info.next_start == job.next_starts(3)[0]
    assert job.next_starts(3)[2] - job.next_start == timedelta(hours=2)
    assert (job.statistics().runs, job.statistics().last_outcome) == (0, None)


@in_a_thread
def test_all_jobs_are_listed(w):
    """More of them than one page of the API holds."""
    for number in range(12):
        w.add("nothing", "@every 1h", id=f"job {number}", tags=["even"] if number % 2 == 0 else [])
    w.settle()
    assert sorted(job.id for job in w.s.jobs()) == sorted(f"job {number}" for number in range(12))
    assert "job 3" in w.s
    assert w.s.get("job 4").tags == {"even"}


WRONG = [
    (("nothing", "@every 10 sheep"), {}, ScheduleError),
    (("nothing", "61 * * * *"), {}, ScheduleError),
    (("missing", "@every 1h"), {}, UnknownTask),
    (("nothing", "@every 1h"), {"needs": "missing"}, UnknownLimit),
    (("nothing", "@every 1h"), {"needs": {"http": 3}}, InvalidJob),
    (("nothing", "@every 1h"), {"timeout": "ten"}, InvalidJob),
    (("nothing", "@every 1h"), {"overlap": "both"}, InvalidJob),
    (("nothing", "@every 1h"), {"max_running": 0}, InvalidJob),
    (("nothing", "@every 1h"), {"args": [{1}]}, InvalidJob),
    (("nothing", "@every 1h"), {"kwargs": {"a": float("nan")}}, InvalidJob),
    (("nothing", "@every 1h"), {"tags": [1]}, InvalidJob),
    (("nothing", "@every 1h"), {"on_conflict": "fight"}, InvalidJob),
    (("nothing", "@every 1h"), {"max_instances": 3}, TypeError),
]


@pytest.mark.parametrize(("args", "options", "kind"), WRONG)
@in_a_thread
def test_a_wrong_job_is_refused_in_the_same_words(w, s, args, options, kind):
    """The error has the class and the text that the scheduler itself raises, and no job is there."""
    with pytest.raises(kind) as here:
        s.add(*args, id="a", **options)
    with pytest.raises(kind) as found:
        w.add(*args, id="a", **options)
    assert (type(found.value), str(found.value)) == (type(here.value), str(here.value))
    assert "a" not in w.s


@in_a_thread
def test_an_id_that_is_taken(w):
    """`on_conflict` says what to do."""
    first = w.add("nothing", "@every 1h", id="a")
    w.settle()
    with pytest.raises(DuplicateJob, match=r"^there is a job 'a' already: choose another id, or on_conflict="):
        w.add("nothing", "@every 2h", id="a")
    assert w.add("nothing", "@every 2h", id="a", on_conflict="keep").spec == first.spec
    w.add("nothing", "@every 2h", id="a", on_conflict="update")
    w.settle()
    assert w.s.get("a").spec.schedule == "@every 2h"
    w.add("nothing", "@every 3h", id="a", on_conflict="replace")
    w.settle()
    assert w.s.get("a").spec.schedule == "@every 3h"


@in_a_thread
def test_a_replaced_job_has_no_counts(w):
    """An updated one keeps them."""
    job = w.add("nothing", "@every 1h", id="a")
    job.run_now().result("30s")
    w.add("nothing", "@every 2h", id="a", on_conflict="update")
    w.settle()
    assert w.s.get("a").statistics().runs == 1
    w.add("nothing", "@every 3h", id="a", on_conflict="replace")
    w.settle()
    assert w.s.get("a").statistics().runs == 0


@in_a_thread
def test_a_job_that_is_not_there(w):
    """It is said with its id."""
    with pytest.raises(JobNotFound) as found:
        w.s.get("none")
    assert "'none'" in str(found.value)
    assert "none" not in w.s


@in_a_thread
def test_an_option_is_changed_and_the_others_stay(w):
    """A change names what it changes; `kwargs` and `needs` are replaced as a whole."""
    job = w.add("nothing", "@every 1h", id="a", **OPTIONS)
    job.update(kwargs={"b": 1}, timeout=None, schedule="@every 2h", needs=())
    w.settle()
    changed = OPTIONS | {"kwargs": {"b": 1}, "timeout": None, "needs": ()}
    assert w.s.get("a").spec == JobSpec("a", "nothing", "@every 2h", owner="api", **changed)


@in_a_thread
def test_another_overlap_rule_has_its_own_bound(w):
    """`max_running` was not said, so it is the default of the new rule."""
    job = w.add("nothing", "@every 1h", id="a")
    job.update(overlap="allow")
    w.settle()
    assert w.s.get("a").spec.max_running == 10


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"timeout": "ten"}, InvalidJob),
        ({"schedule": "@every 10 sheep"}, ScheduleError),
        ({"func": "missing"}, UnknownTask),
        ({"needs": "missing"}, UnknownLimit),
        ({"tags": 1}, InvalidJob),
    ],
)
@in_a_thread
def test_a_wrong_change_changes_nothing(w, changes, kind):
    """It is refused whole."""
    job = w.add("nothing", "@every 1h", id="a")
    with pytest.raises(kind):
        job.update(**{"name": "new"} | changes)
    w.settle()
    assert w.s.get("a").spec == JobSpec("a", "nothing", "@every 1h", owner="api")


@in_a_thread
def test_a_pause_holds_until_it_is_resumed(w):
    """It has a reason and an end."""
    job, until = w.add("nothing", "@every 1h", id="a"), in_hours(2)
    job.pause("new disks", until=until)
    w.settle()
    (pause,) = w.s.get("a").pauses
    assert (pause.reason, pause.until, w.s.get("a").state) == ("new disks", until, JobState.DISABLED)
    job.resume()
    w.settle()
    assert (w.s.get("a").pauses, w.s.get("a").state) == ((), JobState.SCHEDULED)
    job.disable("broken")
    w.settle()
    assert "broken" in w.s.get("a").error
    job.enable()
    w.settle()
    assert w.s.get("a").error is None


@pytest.mark.parametrize("until", [datetime(2001, 1, 1, tzinfo=UTC), datetime(2051, 1, 1), "tomorrow"])
@in_a_thread
def test_a_pause_with_a_wrong_end_is_refused(w, until):
    """An end is aware, and to come."""
    job = w.add("nothing", "@every 1h", id="a")
    with pytest.raises(InvalidJob, match="until"):
        job.pause(until=until)


@in_a_thread
def test_a_start_is_skipped_and_put_back(w):
    """`supersede` undoes it."""
    job = w.add("nothing", "@every 1h", id="a")
    w.settle()
    first = job.next_start
    job.skip()
    w.settle()
    assert w.s.get("a").next_start == first + timedelta(hours=1)
    job.supersede()
    w.settle()
    assert w.s.get("a").next_start == first


@in_a_thread
def test_a_next_start_by_hand(w):
    """It replaces the schedule's, once."""
    job, at = w.add("nothing", "@every 1h", id="a"), in_hours(30)
    job.set_next_start(at)
    w.settle()
    assert w.s.get("a").next_start == at
    with pytest.raises(InvalidJob, match="at must be an aware datetime"):
        job.set_next_start(datetime(2051, 1, 1))


@in_a_thread
def test_a_removed_job_is_gone(w):
    """Removing it again changes nothing; its verbs say that it is not there."""
    job = w.add("nothing", "@every 1h", id="a")
    job.remove()
    job.remove()
    w.settle()
    assert "a" not in w.s
    for verb in (job.pause, job.resume, job.run_now, job.skip, functools.partial(job.update, timeout=1)):
        with pytest.raises(JobNotFound, match="'a'"):
            verb()


@in_a_thread
def test_a_run_that_is_asked_for_is_answered(w):
    """With its outcome and its result."""
    answer = w.add("echo", "@every 1h", id="a", args=[{"x": [1, "ä"]}]).run_now().result("30s")
    assert (answer.job_id, answer.outcome, answer.result) == ("a", Outcome.SUCCEEDED, {"x": [1, "ä"]})
    failed = w.add("fail", "@every 1h", id="b").run_now().result("30s")
    assert (failed.outcome, failed.attempt) == (Outcome.FAILED, 1)
    assert "no disk" in failed.error
    assert w.s.get("b").statistics().failures == 1


@in_a_thread
def test_each_of_many_runs_has_its_own_answer(w):
    """One asked for after another."""
    job = w.add("echo", "@every 1h", id="a")
    dues = []
    for number in range(5):
        job.update(args=[number])
        answer = job.run_now().result("30s")
        assert answer.result == number
        dues.append(answer.due)
    assert dues == sorted(set(dues))
    assert [each.due for each in w.history("a", limit=3)] == dues[:1:-1]
    assert [each.due for each in w.history("a", before=dues[2])] == dues[1::-1]


@in_a_thread
def test_a_run_beside_another_is_missed(w, gate):
    """The overlap rule leaves it out, and the answer says so. The wait for the other one has an end."""
    job = w.add("gate", "@every 1h", id="a")
    first = job.run_now()
    wait_until(gate.begun.is_set)
    answer = job.run_now().result("30s")
    assert (answer.outcome, answer.reason) == (Outcome.MISSED, MissedReason.OVERLAP)
    assert w.s.get("a").state is JobState.RUNNING
    with pytest.raises(TimeoutError, match=r"the run of job 'a' that was asked for has not ended after 0\.05 s"):
        first.result("50ms")
    gate.opened.set()
    assert first.result("30s").outcome is Outcome.SUCCEEDED


@in_a_thread
def test_limits_are_read_and_changed(w):
    """Of each kind."""
    assert (w.limits()["http"].size, w.limits()["http"].used) == (2, 0)
    w.s.resize(7, {"http": 5, "new": 1, "pace": rate(3, "1s")})
    w.settle()
    found = w.limits()
    assert (found["http"].size, found["new"].size, found["pace"].size) == (5, 1, 3)
    for sizes in ({"http": 0}, {"http": "many"}, {"http": fleet(3)}):
        with pytest.raises(InvalidJob, match="http"):
            w.s.resize(limits=sizes)


@in_a_thread
def test_a_set_is_put_whole(w):
    """What differs is changed, and what is not in it is removed."""

    def spec(id, every="1h"):
        return JobSpec(id, "nothing", f"@every {every}")

    w.add("nothing", "@every 1h", id="other")
    first = w.s.sync([spec("a"), spec("b"), spec("c")], owner="cmdb")
    assert (first.added, first.changed, first.removed) == (("a", "b", "c"), (), ())
    w.settle()
    told = w.s.sync([spec("a"), spec("b", "2h")], owner="cmdb", dry_run=True)
    assert (told.unchanged, told.changed, told.removed) == (("a",), ("b",), ("c",))
    assert "c" in w.s
    assert w.s.sync([spec("d")], owner="cmdb", prune=False).removed == ()
    assert sorted(w.s.sync([spec("a"), spec("b", "2h")], owner="cmdb").removed) == ["c", "d"]
    w.settle()
    assert sorted(job.id for job in w.s.jobs()) == ["a", "b", "other"]
    with pytest.raises(WrongOwner) as found:
        w.s.sync([spec("a"), spec("other")], owner="cmdb")
    assert found.value.owner == "api"
    with pytest.raises(UnknownTask, match=r"^jobs\[1\]: "):
        w.s.sync([spec("a"), JobSpec("e", "missing", "@every 1h")], owner="cmdb")


@in_a_thread
def test_many_threads_ask_at_once(w):
    """Each gets its own answer."""
    ids, troubles = [f"job {number}" for number in range(16)], []

    def work(id):
        try:
            w.add("echo", "@every 1h", id=id, args=[id])
            troubles.extend([id] if w.s.get(id).args != (id,) else [])
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            troubles.append(error)

    threads = [threading.Thread(target=work, args=(id,)) for id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    assert sorted(job.id for job in w.s.jobs()) == sorted(ids)


def test_each_error_of_the_library_is_told_by_the_api():
    """A new one is raised by a client, too."""
    from scheduler.web._client.refusals import refusal_of  # noqa: PLC0415 - what is behind the face
    from scheduler.web._protocol import problem_of  # noqa: PLC0415 - what is behind the face

    for kind in (InvalidJob, DuplicateJob, WrongOwner, JobNotFound, UnknownTask, UnknownLimit, ScheduleError):
        problem = problem_of(kind("words"))
        found = refusal_of(problem.status, problem.body)
        assert (type(found), str(found)) == (kind, str(kind("words")))
    for kind in (AlreadyStopped, LifecycleError):
        problem = problem_of(kind("words"))
        assert type(refusal_of(problem.status, problem.body)) is kind
