"""What only a client has: an address, a token, a network that fails, and answers of many pages."""

import json
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest
from anyio.to_thread import run_sync

from asgi import Caller
from kit import PATIENCE
from scheduler import InvalidJob, JobState, Scheduler
from scheduler.web import ApiError, Client, Elsewhere, NotAllowed, Unreachable, app
from served import address_of, listening, served


def test_a_client_needs_no_toolkit():
    """`Client` and `Elsewhere` are imported without starlette, and the library without them."""
    code = "import sys; from scheduler.web import Client, Elsewhere; print('starlette' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    "address",
    [
        "", "localhost:8000", "ftp://host/", "http://", "http://host:port/", "http://host:99999", "unix:relative",
        "http://ann:secret@host/", "http://host/?a=1", "http://host/#a", "http://ho st/", "unix:/a:b", None, 3,
        "http://host:0/", "http://höst/", "unix:/a\n", "http://[::1",
    ],
)  # fmt: skip
def test_a_wrong_address_is_refused(address):
    """With what an address is."""
    with pytest.raises(ValueError, match=r"must be a URL or the path of a socket, such as http://127\.0\.0\.1:8000"):
        Client(address)


async def test_a_wrong_token_is_refused(address):
    """It is said what is missing; the token stands nowhere in the text."""
    with pytest.raises(NotAllowed, match="needs a caller with access") as found:
        await run_sync(Client(address, token="quiet").jobs)
    assert (found.value.status, found.value.kind) == (401, "no-access")
    reader = Client(address, token="rita:read")
    with pytest.raises(NotAllowed, match="that needs the scope 'admin'"):
        await run_sync(lambda: reader.add("nothing", "@every 1h", id="a"))
    assert "quiet" not in repr(Client(address, token="quiet"))


async def test_a_reader_sees_jobs_without_arguments(s, address):
    """What is hidden is said to be hidden, and never shown as empty."""
    s.add("echo", "@every 1h", id="a", args=["secret"], tags=["t"])
    await s.flush()
    job = await run_sync(Client(address, token="rita:read").get, "a")
    assert (job.id, job.tags, job.state, job.snapshot.spec) == ("a", {"t"}, JobState.SCHEDULED, None)
    assert "secret" not in repr(job.snapshot)
    for name in ("args", "kwargs", "spec"):
        with pytest.raises(NotAllowed, match="operate"):
            getattr(job, name)
    with pytest.raises(TypeError, match="in another process"):
        _ = job.func


async def test_pages_are_followed(s, client):
    """More jobs than a page holds, and more records; filters stay."""
    s.add_many("nothing", [(f"job {number:04}", "@every 1h") for number in range(1_203)])
    s.add("nothing", "@every 1h", id="z", tags=["x", "y"], name="ä & ?")
    await s.flush()
    found = await run_sync(client.jobs)
    assert [job.id for job in found] == sorted(job.id for job in s.jobs())
    found = await run_sync(lambda: client.jobs(tags=["x", "y"], q="ä & ?", states=list(JobState), owner="code"))
    assert [job.id for job in found] == ["z"]
    assert len(await run_sync(lambda: client.jobs(q="job 0", sort="-next_start"))) == 1_000


async def test_records_are_read_by_pages(s, client):
    """As many as are asked for."""
    job = s.add("nothing", "@every 1h", id="a")
    for _ in range(7):
        await job.run_now()
    await s.flush()
    assert len(await run_sync(client.history, "a")) == 7
    assert len(await run_sync(lambda: client.history("a", limit=3))) == 3
    with pytest.raises(InvalidJob, match="limit"):
        await run_sync(lambda: client.history("a", limit=0))


async def test_a_summary_counts_jobs(s, client):
    """By state and by owner; runs by outcome."""
    job = s.add("nothing", "@every 1h", id="a")
    await job.run_now()
    s.add("nothing", "@every 1h", id="b", owner="cmdb").pause()
    await s.flush()
    found = await run_sync(client.summary)
    assert (found.jobs, found.runs, found.owners) == (2, 1, {"code": 1, "cmdb": 1})
    assert (found.states[JobState.SCHEDULED], found.states[JobState.DISABLED]) == (1, 1)
    assert found.store.trouble is None


async def test_any_route_can_be_asked(client):
    """A verb that the client lacks is one line."""
    assert (await run_sync(lambda: client.ask("GET", "/v1/summary").body))["jobs"] == 0
    with pytest.raises(ApiError, match="there is no '/v1/nothing' here"):
        await run_sync(client.ask, "GET", "/v1/nothing")


async def test_a_job_of_code_is_not_changed(s, client):
    """It may be run and paused."""
    from scheduler import WrongOwner  # noqa: PLC0415 - beside its match

    s.add("nothing", "@every 1h", id="a")
    await s.flush()
    job = await run_sync(client.get, "a")
    for verb in (job.remove, lambda: job.update(timeout=3)):
        with pytest.raises(WrongOwner, match="job 'a' belongs to 'code'") as found:
            await run_sync(verb)
        assert found.value.owner is None
    await run_sync(job.pause, "why")
    assert (await run_sync(job.info)).pauses[0].reason == "why"


async def test_a_change_beside_a_change_loses_nothing(s, client):
    """Each of two threads changes another option of one job, again and again: both last changes hold."""
    await run_sync(lambda: client.add("nothing", "@every 1h", id="a"))

    def change(name):
        for number in range(1, 6):
            client.get("a").update(**{name: number})

    async def both(threads):
        for thread in threads:
            thread.start()
        for thread in threads:
            await run_sync(thread.join)

    await both([threading.Thread(target=change, args=(name,)) for name in ("priority", "timeout")])
    assert (s.get("a").priority, s.get("a").spec.timeout) == (5, 5)


# -- a network that fails ----------------------------------------------------------------------------------------------


@contextmanager
def playing(*answers):
    """Answer one connection after another: None closes it once the request has come. Yield address and requests."""
    server = socket.create_server(("127.0.0.1", 0))
    requests = []

    def play():
        for answer in answers:
            connection, _ = server.accept()
            with connection:
                requests.append(connection.recv(65_536).decode().partition("\r\n")[0])
                if answer is not None:
                    connection.sendall(answer)

    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    with server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}", requests
    thread.join(PATIENCE)


def answer_of(status, body=None, kind="application/json"):
    """Spell an answer of HTTP."""
    data = b"" if body is None else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_what_may_be_done_twice_is_sent_again(method):
    """The answer to the first may be lost on its way."""
    with playing(None, None, answer_of(200, {"a": 1})) as (address, requests):
        assert Client(address).ask(method, "/v1/x").body == {"a": 1}
    assert requests == [f"{method} /v1/x HTTP/1.1"] * 3


@pytest.mark.parametrize(
    ("method", "headers"), [("POST", {}), ("PATCH", {}), ("PUT", {"If-None-Match": "*"}), ("PUT", {"If-Match": '"1"'})]
)
def test_what_may_not_be_done_twice_is_sent_once(method, headers):
    """The error says that it may have been carried out."""
    said = r"was not answered: .*; it may have been carried out"
    with playing(None) as (address, requests), pytest.raises(Unreachable, match=said):
        Client(address).ask(method, "/v1/x", headers=headers)
    assert len(requests) == 1


def test_a_server_that_is_not_there(tmp_path):
    """Nothing has been sent, so nothing has changed."""
    for address in (f"unix:{tmp_path}/none.sock", "http://127.0.0.1:1"):
        with pytest.raises(Unreachable, match="nothing has changed"):
            Client(address).ask("POST", "/v1/x")


def test_a_removal_that_was_carried_out_and_not_answered():
    """The second try finds nothing: the job is removed."""
    gone = {"type": "urn:timerqueue:problem:no-such-job", "detail": "there is no job 'a'", "status": 404}
    with playing(None, answer_of(404, gone, "application/problem+json")) as (address, requests):
        Client(address).remove("a")
    assert len(requests) == 2


def test_a_silent_server_is_left():
    """A wait for an answer is bounded, on each try."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = Client(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.05)
        with pytest.raises(Unreachable, match="timed out"):
            client.ask("GET", "/v1/x")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"nonsense\r\n\r\n", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Type: application/json\r\n\r\n{", Unreachable),
        (b"HTTP/1.1 799 OK\r\nContent-Length: 0\r\n\r\n", Unreachable),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 5\r\nContent-Type: text/html\r\n\r\n<htm>", ApiError),
        (b"HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", ApiError),
        (answer_of(500, [1]), ApiError),
        (answer_of(400, {"type": 3, "detail": 4}), ApiError),
        (answer_of(421, {"detail": "elsewhere", "owner": "nowhere"}), ApiError),
    ],
)
def test_a_strange_answer_is_an_error_of_the_library(answer, error):
    """Whatever stands between: no error of a parser comes through."""
    with playing(answer) as (address, _), pytest.raises(error):
        Client(address).ask("POST", "/v1/x")


# -- the scheduler is in another process -------------------------------------------------------------------------------


async def test_a_client_follows_to_the_process_with_the_scheduler(s, tmp_path):
    """421 names it. Verbs that may not be done twice follow, too: nothing was carried out before."""
    bound, front = listening(tmp_path / "api.sock"), listening()
    with served(app(s, access=lambda _: _admin()), bound), served(Elsewhere(address_of(bound)), front):
        client = Client(address_of(front))
        job = await run_sync(lambda: client.add("echo", "@every 1h", id="a", args=[1]))
        assert (await run_sync(lambda: job.run_now().result("30s"))).result == 1
        assert "a" in s


async def test_a_client_follows_to_each_new_owner(s, tmp_path):
    """The process that had the scheduler lives on without it, and says so: with 421, or with 503 meanwhile."""
    bound, front, former = listening(tmp_path / "api.sock"), listening(), listening()
    place, known = [address_of(former)], [None]
    api, elsewhere = app(s, access=lambda _: _admin()), Elsewhere(lambda: known[0])
    changing = [api]

    class Former:
        async def __call__(self, scope, receive, send):
            await changing[0](scope, receive, send)

    with served(api, bound), served(Elsewhere(lambda: place[0]), front), served(Former(), former):
        client = Client(address_of(front))
        assert await run_sync(client.jobs) == []
        changing[0] = elsewhere
        with pytest.raises(ApiError, match="no process runs the scheduler now"):
            await run_sync(client.jobs)
        place[0] = known[0] = address_of(bound)
        assert await run_sync(client.jobs) == []
        place[0], changing[0] = address_of(former), api
        client = Client(address_of(front))
        assert await run_sync(client.jobs) == []
        place[0], changing[0] = address_of(bound), elsewhere
        assert (await run_sync(lambda: client.add("echo", "@every 1h", id="a"))).id == "a"


def test_what_may_hold_is_not_sent_to_another_owner():
    """503 says that a change may hold, so the act is not repeated."""
    with ExitStack() as stack:
        owner, sent = stack.enter_context(playing(answer_of(503, {"detail": "not durable"})))
        elsewhere = answer_of(421, {"detail": "there", "owner": owner})
        front, requests = stack.enter_context(playing(elsewhere))
        with pytest.raises(ApiError, match="not durable"):
            Client(front).ask("POST", "/v1/x")
    assert len(sent) == len(requests) == 1


async def test_a_process_without_the_scheduler_names_its_owner():
    """Each route is answered so, over ASGI and over WSGI; the body of a HEAD is empty."""
    places = iter(["unix:/run/jobs.sock", None, "unix:/run/jobs.sock", "unix:/run/jobs.sock"])
    elsewhere = Elsewhere(lambda: next(places))
    call = Caller(elsewhere)
    found = await call.put("/v1/jobs/a", {})
    assert (found.status, found.json["owner"]) == (421, "unix:/run/jobs.sock")
    assert found.headers["content-type"] == "application/problem+json"
    found = await call.get("/v1/jobs")
    assert (found.status, found.headers["retry-after"], "owner" in found.json) == (503, "5", False)
    assert (await call("HEAD", "/v1/jobs")).body == b""
    heads = []
    (body,) = elsewhere.wsgi({"REQUEST_METHOD": "GET"}, lambda *head: heads.append(head))
    assert heads[0][0] == "421 Misdirected Request"
    assert dict(heads[0][1])["Content-Length"] == str(len(body))


async def test_nobody_runs_the_scheduler_now():
    """A client hears when to try again."""
    front = listening()
    said = "no process runs the scheduler now"
    with served(Elsewhere(lambda: None), front), pytest.raises(ApiError, match=said) as found:
        await run_sync(Client(address_of(front)).jobs)
    assert found.value.status == 503


def _admin():
    from scheduler.web import Access  # noqa: PLC0415 - as a program does

    return Access("ann", "admin")


async def test_a_scheduler_that_has_stopped(tmp_path):
    """Verbs are refused as by the scheduler itself."""
    s = Scheduler(store=f"sqlite:///{tmp_path}/jobs.db")
    s.register("nothing", print)
    async with s:
        pass
    bound = listening()
    with served(app(s, access=lambda _: _admin()), bound), pytest.raises(ApiError, match="nothing has changed"):
        await run_sync(lambda: Client(address_of(bound)).add("nothing", "@every 1h", id="a"))
