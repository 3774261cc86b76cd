"""What users rely on in the text for Prometheus: names, labels, bounds of size, and nothing imported for nothing."""

import re
import subprocess
import sys
import threading

import pytest
from attrs import evolve
from hypothesis import given, strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import DuplicateTimeseries

from exposed import exposed, series
from kit import PATIENCE, at, nothing
from scheduler import Outcome, Scheduler
from scheduler.metrics import (
    CONTENT_TYPE,
    METRICS,
    MOST_JOBS,
    OPENMETRICS_CONTENT_TYPE,
    Collector,
    MetricKind,
    exposition,
    render,
    snapshot,
)
from scheduler.metrics._bounds import MOST_KINDS, OTHERS, labels_of
from scheduler.metrics._of_runs import _kinds

BASE_UNITS = ("_seconds", "_total", "_info")
MANY = 10_000


async def broken():
    """Fail."""
    raise ValueError


def test_a_scheduler_that_has_not_begun_has_figures():
    """A server may be asked before the scheduler runs, and after."""
    s = Scheduler()
    s.add(nothing, "@every 1h")
    found = exposed(exposition(s))
    assert found[series("timerqueue_scheduler_running")] == 0
    assert found[series("timerqueue_jobs", state="scheduled")] == 1


def test_ten_thousand_jobs_of_many_kinds_have_at_most_five_thousand_series():
    """Series cost the server of Prometheus memory, for weeks. Later kinds and limits share one label."""
    s = Scheduler(limits={f"limit-{number}": 5 for number in range(1_000)})
    for number in range(MANY):
        s.add(nothing, "@every 1h", id=f"job {number}", needs=f"limit-{number % 1_000}")
    found = exposed(exposition(s, jobs="*"))
    assert len(found) <= 5_000
    assert found[series("timerqueue_jobs_left_out")] == MANY - MOST_JOBS
    assert found[series("timerqueue_limit_members", limit=OTHERS)] == 800


async def test_ten_thousand_runs_of_many_kinds_have_at_most_five_thousand_series(quiet):
    """As many kinds as there are limits have run, and failed."""
    async with Scheduler(limits={f"limit-{number}": 5 for number in range(200)}) as s:
        for number in range(400):
            s.add(
                broken if number % 2 else nothing,
                "@every 1h",
                id=str(number),
                needs=f"limit-{number % 200}",
                start="now",
            )
        asked = [job.run_now() for job in s.jobs()]
        for each in asked:
            await each
        found = exposed(exposition(s, jobs="*"))
    assert len(found) <= 6_000 - 1_000
    kinds = {dict(labels).get("kind") for _, labels in found} - {None}
    assert len(kinds) == 51


@given(st.lists(st.text(max_size=3), unique=True), st.integers(0, 5))
def test_a_label_once_given_stays(names, most):
    """A kind that changed its label would let two counters jump."""
    for count in range(len(names)):
        before = labels_of({name: name for name in names[:count]}, most)
        after = labels_of({name: name for name in names}, most)
        assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("openmetrics", [False, True])
@given(id=st.text(min_size=1, max_size=20).filter(str.strip))
def test_an_id_of_any_text_is_escaped(id, openmetrics):
    """Quotes, backslashes and ends of lines would let a job write series of its own."""
    s = Scheduler()
    try:
        s.add(nothing, "@every 1h", id=id)
    except ValueError:
        return  # no id
    found = exposed(exposition(s, jobs="*", openmetrics=openmetrics), openmetrics=openmetrics)
    assert series("timerqueue_job_runs_total", job_id=id) in found


def test_an_id_with_half_a_surrogate_pair_is_left_out():
    """UTF-8 has no way to write it, and escaped it would be the other id: Prometheus refuses two series of one name."""
    s = Scheduler()
    for id in ("\\ud800", "\ud800", "\udfff", "job"):
        s.add(nothing, "@every 1h", id=id)
    text = exposition(s, jobs="*").decode()
    assert text.count("timerqueue_job_runs_total{") == 2
    assert exposed(text.encode())[series("timerqueue_jobs_left_out")] == 2


@given(st.lists(st.text(st.sampled_from("\ud800\\ud80\udfff"), min_size=1), unique=True))
def test_names_that_look_the_same_have_one_series(names):
    """A kind and a limit may have half of a surrogate pair in its name, too."""
    labels = labels_of({name: name for name in names}, MOST_KINDS)
    for label in labels.values():
        label.encode()
    limits = dict.fromkeys(names, 1)
    taken = evolve(snapshot(Scheduler(limits=limits)), left_out=None)
    sizes = [line for line in render(taken).decode().splitlines() if line.startswith("timerqueue_limit_units{")]
    assert len({line.rpartition(" ")[0] for line in sizes}) == len(sizes) == len({*labels.values()})


def test_a_kind_keeps_its_label_whatever_runs_or_is_added():
    """Kinds are in the order of their first job, not of their first run."""
    limits = {f"limit-{number:02}": 5 for number in range(MOST_KINDS + 20)}
    s = Scheduler(limits=limits)
    known = {}
    for name in reversed(limits):
        s.add(nothing, "@every 1h", id=name, needs=name)
        if len(known) % 7 == 0:
            s._registry.lateness.of(name).end(Outcome.FAILED, 1.0)
            s._registry.lateness.of(name).crashes += 1
        found = _kinds(snapshot(s))
        assert known.items() <= found.items()
        known = found
    assert list(known.values()).count(OTHERS) == 20


async def test_jobs_have_series_only_if_asked_for(clock):
    """By patterns of their ids. Case counts."""
    async with Scheduler(clock=clock) as s:
        for id in ("backup-a", "backup-b", "Backup-c", "other"):
            s.add(nothing, "@every 10s", id=id, start=at(5))
        await clock.travel(6)
        assert not any("job_" in name for name, _ in exposed(exposition(s)))
        found = exposed(exposition(s, jobs=["backup-*", "oth?r"]))
        ids = {dict(labels).get("job_id") for _, labels in found} - {None}
        assert ids == {"backup-a", "backup-b", "other"}
        assert found[series("timerqueue_job_last_success_timestamp_seconds", job_id="other")] == at(5).timestamp()
        assert found[series("timerqueue_job_next_start_timestamp_seconds", job_id="other")] == at(15).timestamp()


async def test_a_removed_or_renamed_job_leaves_no_series(clock):
    """An alert on an old series would fire for ever."""
    async with Scheduler(clock=clock) as s:
        collector = Collector(s, jobs="*")
        registry = CollectorRegistry()
        registry.register(collector)
        s.add(nothing, "@every 1s", id="old")
        await clock.travel(3)
        assert b'job_id="old"' in generate_latest(registry)
        s.get("old").remove()
        s.add(nothing, "@every 1s", id="new")
        text = generate_latest(registry)
        assert b'job_id="old"' not in text
        assert b'job_id="new"' in text


def test_a_registry_refuses_two_schedulers_without_a_word_to_tell_them_apart():
    """Their series would be the same, and Prometheus would refuse all of them."""
    registry = CollectorRegistry()
    registry.register(Collector(Scheduler()))
    with pytest.raises(DuplicateTimeseries):
        registry.register(Collector(Scheduler()))


@pytest.mark.parametrize("jobs", [[5], [b"x"], [None]])
def test_a_pattern_that_is_no_text_is_refused(jobs):
    """When the collector is made, and not at the first scrape."""
    with pytest.raises(TypeError, match=r'jobs= takes patterns of ids, such as "backup-\*", not'):
        Collector(Scheduler(), jobs=jobs)


def test_a_snapshot_is_rendered_in_another_thread(clock):
    """The loop goes on meanwhile. The text is of the moment of the snapshot."""
    s = Scheduler(clock=clock)
    taken = snapshot(s)
    s.add(nothing, "@every 1h")
    texts = []
    thread = threading.Thread(target=lambda: texts.append(render(taken)))
    thread.start()
    thread.join(PATIENCE)
    assert exposed(texts[0])[series("timerqueue_jobs", state="scheduled")] == 0


def test_names_have_our_prefix_base_units_and_a_sentence_of_help():
    """As Prometheus's conventions ask for. A counter ends in _total."""
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"timerqueue(_[a-z]+)+", metric.name), metric.name
        assert not re.search(r"_(ms|minutes|bytes|milliseconds|percent)\b", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
        assert metric.text.endswith(".")
        assert (metric.kind is MetricKind.HISTOGRAM) <= metric.family.endswith("_seconds")


def test_the_formats_say_what_they_are():
    """The headers go with the texts."""
    s = Scheduler()
    assert exposition(s, openmetrics=True).endswith(b"# EOF\n")
    assert b"# EOF" not in exposition(s)
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")
    assert OPENMETRICS_CONTENT_TYPE.startswith("application/openmetrics-text; version=1.0.0")


def test_a_scheduler_imports_nothing_of_it():
    """Neither prometheus_client nor our part for it."""
    program = "import scheduler, sys; s = scheduler.Scheduler(); s.statistics(); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert [name for name in done.stdout.split() if "prometheus" in name or "metrics" in name] == []


def test_without_the_client_the_error_names_the_extra():
    """`pip install` with these words brings it."""
    program = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "try:\n    import scheduler.metrics\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert "pip install timerqueue[metrics]" in done.stdout
