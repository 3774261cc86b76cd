"""`scheduler.otel`: what has ended becomes spans, by the SDK of OpenTelemetry."""

import subprocess
import sys
from datetime import timedelta

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from kit import when
from scheduler import (
    AgentLost,
    ClockJumped,
    InvalidJob,
    JobAdded,
    Outcome,
    RunEnded,
    Scheduler,
    StoreDown,
    StoreUp,
)
from scheduler.otel import Spans


@pytest.fixture
def exported():
    """The spans that an SDK would send."""
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exported):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    return provider.get_tracer("timerqueue")


def ended(number=0, outcome=Outcome.SUCCEEDED, error=None):
    """Make the end of a run."""
    due = when(10.0 + number)
    ended = due + timedelta(seconds=1.5)
    return RunEnded("a", due, due, ended, 1, 0.25, 1.5, outcome, error=error)


def test_a_run_is_a_span_from_its_begin_to_its_end(tracer, exported):
    """With its job, due instant, attempt, outcome and lateness."""
    Spans(runs=1, tracer=tracer)(ended())
    [span] = exported.get_finished_spans()
    assert span.name == "timerqueue run"
    assert (span.end_time - span.start_time, span.status.status_code) == (1_500_000_000, StatusCode.UNSET)
    assert span.start_time == int(when(10.0).timestamp()) * 10**9
    assert span.attributes == {
        "timerqueue.job.id": "a",
        "timerqueue.run.due": when(10.0).isoformat(),
        "timerqueue.run.attempt": 1,
        "timerqueue.run.outcome": "succeeded",
        "timerqueue.run.lateness": 0.25,
    }


def test_by_default_only_runs_that_do_not_succeed_have_spans(tracer, exported):
    """A cancelled run was ended by people, or by a stop."""
    spans = Spans(tracer=tracer)
    for outcome in Outcome:
        spans(ended(outcome=outcome, error="no luck"))
    told = {span.attributes["timerqueue.run.outcome"]: span.status for span in exported.get_finished_spans()}
    assert set(told) == {each.value for each in Outcome} - {"succeeded", "cancelled"}
    assert {(each.status_code, each.description) for each in told.values()} == {(StatusCode.ERROR, "no luck")}


def test_a_share_of_the_ticks_is_chosen_and_each_node_chooses_the_same(tracer, exported):
    """By the job and the due instant, so that all attempts of a tick are told, or none."""
    for _ in range(2):
        spans = Spans(runs=0.25, tracer=tracer)
        for number in range(4_000):
            spans(ended(number))
    dues = [span.attributes["timerqueue.run.due"] for span in exported.get_finished_spans()]
    first, second = dues[: len(dues) // 2], dues[len(dues) // 2 :]
    assert first == second
    assert 800 < len(first) < 1_200


def test_an_outage_of_the_store_is_one_span(tracer, exported):
    """However often it is told to be down. The end alone, after a start in the outage, is none."""
    spans = Spans(tracer=tracer)
    spans(StoreUp(when(1.0), 1.0))
    spans(StoreDown(when(10.0), "no space"))
    spans(StoreDown(when(11.0), "locked"))
    spans(StoreUp(when(15.0), 5.0))
    [span] = exported.get_finished_spans()
    assert (span.name, span.end_time - span.start_time) == ("timerqueue store outage", 5 * 10**9)
    assert span.status.description == "no space"


def test_a_jump_of_the_clock_and_a_lost_node_have_no_length(tracer, exported):
    """To be lost oneself is an error, another's loss is not."""
    spans = Spans(tracer=tracer)
    spans(ClockJumped(when(10.0), -3.0))
    spans(AgentLost(when(11.0), "b", "its lease has ended"))
    spans(AgentLost(when(12.0), "a", "its lease has ended", is_us=True))
    spans(JobAdded("a"))
    clock, other, ours = exported.get_finished_spans()
    assert clock.attributes["timerqueue.clock.seconds"] == -3.0
    assert [each.end_time - each.start_time for each in (clock, other, ours)] == [0, 0, 0]
    assert [each.status.status_code for each in (other, ours)] == [StatusCode.UNSET, StatusCode.ERROR]


def test_a_run_that_ends_before_it_begins_has_no_length(tracer, exported):
    """The clock was set back meanwhile."""
    run = ended()
    Spans(runs=1, tracer=tracer)(RunEnded("a", run.due, run.started, when(1.0), 1, 0.0, 0.5, Outcome.SUCCEEDED))
    [span] = exported.get_finished_spans()
    assert span.end_time == span.start_time


@pytest.mark.parametrize("share", [-0.1, 1.1, "all", True, None])
def test_a_share_is_a_number_from_0_to_1(share):
    """Anything else is refused, with the value."""
    with pytest.raises(InvalidJob, match="runs must be a share from 0 to 1"):
        Spans(runs=share)


async def test_a_scheduler_tells_its_runs(tracer, exported):
    """As a listener, in any scheduler."""

    async def work():
        return None

    async with Scheduler() as s:
        s.listen(Spans(runs=1, tracer=tracer))
        await s.add(work, "@every 1h", id="a").run_now()
        s.stop()
    assert [span.attributes["timerqueue.job.id"] for span in exported.get_finished_spans()] == ["a"]


def test_nothing_of_it_is_imported_unless_it_is_asked_for():
    """Neither OpenTelemetry nor our part for it."""
    program = "import sys, scheduler; print(*[name for name in sys.modules if 'telemetry' in name or 'otel' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_without_the_extra_its_name_is_told():
    """So that one knows what to install."""
    program = "import sys; sys.modules['opentelemetry'] = None\nimport scheduler.otel"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install timerqueue[otel]" in done.stderr
