"""The stream of events: rendered once, coalesced, resumed, and ended with the scheduler or the caller's access."""

import anyio
import pytest

from asgi import Caller
from kit import until
from scheduler import Scheduler
from scheduler.web import Access, app
from scheduler.web._resources.events import MOST_STREAMS
from scheduler.web._resources.frames import KEPT, LONGEST_FRAME, frames_of
from timerqueue import SystemClock


@pytest.fixture
def store():
    """Events do not depend on a store."""
    return


@pytest.fixture
async def frames(s):
    """What the streams of this event loop share."""
    return frames_of(s, SystemClock(), has_runs=False)


def has(scope):
    """Wait for a pause of that scope."""
    return lambda messages: any(
        event.get("scope") == scope for each in messages if each.kind == "changes" for event in each.data["events"]
    )


async def test_a_stream_tells_what_happens(s, reader):
    """In server-sent events, each with its place."""
    async with reader.stream("/v1/events") as stream:
        await stream.until(lambda _: stream.start is not None)
        s.pause("shop", reason="a sale")
        await stream.until(has("tag:shop"))
    assert stream.start["status"] == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in stream.start["headers"]
    (message,) = stream.messages
    assert message.id is not None
    assert message.data["left_out"] == 0
    (event,) = message.data["events"]
    assert (event["event"], event["scope"], event["reason"]) == ("ScopePaused", "tag:shop", "a sale")


async def test_a_head_has_no_events(s, reader):
    """It ends at once."""
    answer = await reader("HEAD", "/v1/events")
    assert (answer.status, answer.body) == (200, b"")


async def test_all_streams_share_one_rendering(s, reader, operator, frames):
    """What is sent to one is sent to all: the same bytes, rendered once."""
    async with anyio.create_task_group() as group:
        streams = []

        async def follow(caller):
            async with caller.stream("/v1/events") as stream:
                streams.append(stream)
                await stream.until(has("tag:last"))

        for caller in [reader, operator] * 20:
            group.start_soon(follow, caller)
        await until(lambda: len(streams) == 40 and all(stream.start for stream in streams))
        before = frames.rendered
        for number in range(50):
            s.pause(f"{number}")
        s.pause("last")
    assert frames.rendered - before <= 2
    assert len({b"".join(stream.pieces) for stream in streams}) == 1
    assert all(len(stream.events) == 51 for stream in streams)


async def test_of_each_job_the_last_event_is_told(s, reader):
    """Many changes in a quarter of a second are one message."""
    job = s.add("nothing", "@every 1h", id="a")
    async with reader.stream("/v1/events") as stream:
        await stream.until(lambda _: stream.start is not None)
        for _ in range(100):
            job.pause()
            job.resume()
        s.pause("end")
        await stream.until(has("tag:end"))
    of_job = [event for event in stream.events if event.get("job_id") == "a" and event["event"] == "JobChanged"]
    assert len(of_job) <= 4
    assert of_job[-1]["state"] == "scheduled"


async def test_runs_that_succeed_are_told_on_request(s, reader):
    """They are many. What fails is always told."""

    async def fails():
        raise ValueError("the secret")

    s.register("fails", fails)
    good, bad = s.add("nothing", "@every 1h", id="good"), s.add("fails", "@every 1h", id="bad")
    async with reader.stream("/v1/events") as few, reader.stream("/v1/events?runs=true") as all_of_them:
        await until(lambda: few.start and all_of_them.start)
        await good.run_now()
        await bad.run_now()
        s.pause("end")
        for stream in (few, all_of_them):
            await stream.until(has("tag:end"))
    ended = [[event for event in stream.events if event["event"] == "RunEnded"] for stream in (few, all_of_them)]
    runs = [[event["job_id"] for event in of_stream] for of_stream in ended]
    assert (runs[0], sorted(runs[1])) == (["bad"], ["bad", "good"])


async def test_nobody_sees_arguments_results_or_errors(s, admin):
    """One rendering serves all callers, so it has nothing that some may not see."""

    async def returns(argument):
        return f"returned {argument}"

    async def fails(argument):
        raise ValueError(f"raised {argument}")

    s.register("returns", returns)
    s.register("fails", fails)
    async with admin.stream("/v1/events?runs=true") as stream:
        await stream.until(lambda _: stream.start is not None)
        for task in ("returns", "fails"):
            await s.add(task, "@every 1h", id=task, args=["canary"]).run_now()
        s.pause("end")
        await stream.until(has("tag:end"))
    assert b"canary" not in b"".join(stream.pieces)
    assert b'"outcome":"failed"' in b"".join(stream.pieces)


async def test_a_stream_goes_on_where_an_earlier_one_ended(s, reader):
    """Nothing is told twice, and nothing is lost."""
    async with reader.stream("/v1/events") as first:
        await first.until(lambda _: first.start is not None)
        s.pause("first")
        await first.until(has("tag:first"))
    s.pause("between")
    async with reader.stream("/v1/events", last_event_id=first.messages[-1].id) as second:
        await second.until(has("tag:between"))
        s.pause("last")
        await second.until(has("tag:last"))
    assert [event["scope"] for event in second.events] == ["tag:between", "tag:last"]
    assert second.of("lagged") == []


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "1",
        "-1",
        "x-1",
        "{name}-",
        "{name}--1",
        "{name}-1e9",
        "{name}-99999999",
        "{name}-" + "9" * 100_000,
        "\xb2-\xb2",
    ],
)
async def test_a_forged_place_is_none(forged, s, reader, frames):
    """The client reads everything again. It gets no more than others."""
    async with reader.stream("/v1/events", last_event_id=forged.format(name=frames.name)) as stream:
        await stream.until(bool)
        s.pause("now")
        await stream.until(has("tag:now"))
    assert [each.kind for each in stream.messages] == ["lagged", "changes"]


async def test_a_stream_ends_with_the_scheduler(store):
    """It says so, and the server need not wait for it."""
    s = Scheduler()
    caller = Caller(app(s, access=lambda _: Access("ann", "read")))
    async with s, caller.stream("/v1/events") as stream:
        await stream.until(lambda _: stream.start is not None)
        s.stop()
        await stream.until_over()
    assert stream.is_complete
    assert stream.messages[-1].kind == "end"


@pytest.mark.parametrize("then", [None, Access("ann", []), "a mistake"])
async def test_a_stream_ends_when_the_caller_loses_access(then, s):
    """It is asked again and again."""
    answers = [Access("ann", "read")]
    async with Caller(app(s, access=lambda _: answers[-1])).stream("/v1/events") as stream:
        await stream.until(lambda _: stream.start is not None)
        answers.append(then)
        await stream.until_over()
    assert stream.is_complete
    assert stream.messages[-1].kind == "end"


async def test_a_stream_that_has_ended_leaves_nothing_behind(s, reader, frames):
    """Whoever looked for the others hands that on."""
    async with reader.stream("/v1/events") as second:
        async with reader.stream("/v1/events") as first:
            await until(lambda: first.start and second.start)
            s.pause("both")
            await first.until(has("tag:both"))
        s.pause("one")
        await second.until(has("tag:one"))
    assert sum(frames._waiting) == 0
    assert not frames._is_looking


async def test_a_slow_reader_is_told_that_it_has_lagged(s, reader, frames):
    """Others go on. What it has missed is kept for nobody."""
    async with reader.stream("/v1/events") as slow, reader.stream("/v1/events") as quick:
        await until(lambda: slow.start and quick.start)
        slow.stop_reading()
        for number in range(12):
            s.pause(f"{number}")
            await quick.until(has(f"tag:{number}"))
        taken = len(slow.pieces)
        slow.go_on_reading()
        await slow.until(lambda _: slow.of("lagged"))
        s.pause("end")
        for stream in (slow, quick):
            await stream.until(has("tag:end"))
    assert taken <= 2
    assert len(quick.events) == 13
    assert len(slow.events) < 13


async def test_a_reader_that_takes_nothing_ends_with_the_scheduler(store):
    """Its last piece is not waited for."""
    s = Scheduler()
    caller = Caller(app(s, access=lambda _: Access("ann", "read")))
    async with s, caller.stream("/v1/events") as stream:
        await stream.until(lambda _: stream.start is not None)
        stream.stop_reading()
        s.pause("x")
        await stream.until(has("tag:x"))
        s.stop()
        await stream.until_over()


async def test_frames_are_bounded(s, frames):
    """In number and in size, whatever happens."""
    frames.look()
    start = frames.position
    for number in range(KEPT + 5):
        s.pause(f"{number}")
        frames.look()
    assert len(frames._frames) == KEPT
    assert frames.after(start).is_lagged
    assert not frames.after(frames.position).frames
    assert len(frames.after(frames._frames[0].last).frames) == KEPT - 1
    for number in range(1_000):
        s.pause(f"{number} {'x' * 400}")
    frames.look()
    assert len(frames._frames[-1].data) < LONGEST_FRAME + 1_000
    assert b'"left_out":0' not in frames._frames[-1].data


async def test_events_that_nobody_has_looked_at_for_long_are_gone(s, frames):
    """A stream from before is told so."""
    frames.look()
    position = frames.position
    for number in range(5_000):
        s.pause(f"{number}")
    frames.look()
    assert frames.after(position).is_lagged


async def test_streams_are_bounded(s, reader, frames):
    """Who asks for too many is told to close one. Others go on."""
    async with reader.stream("/v1/events") as stream:
        await until(lambda: frames.streams == 1)
        frames.streams += MOST_STREAMS - 1
        answer = await reader.get("/v1/events")
        frames.streams -= MOST_STREAMS - 1
        s.pause("x")
        await stream.until(has("tag:x"))
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    await until(lambda: frames.streams == 0)
