"""A scheduler with its API on a real server, and clients of it."""

import threading

import anyio
import pytest
from anyio import from_thread

from kit import nothing
from scheduler import Scheduler, rate
from scheduler.web import Client
from served import address_of, listening, served

ADMIN = "ann:admin"


class Gate:
    """A task that waits until the gate is opened."""

    def __init__(self):
        self.opened = threading.Event()
        self.begun = threading.Event()

    def __call__(self):
        """Run in a worker thread."""
        self.begun.set()
        self.opened.wait()


@pytest.fixture
def gate():
    """Hold up the task "gate" until the end of the test, at the latest."""
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture
async def s(tmp_path, gate):
    """A scheduler that runs, over a file of SQLite."""
    s = Scheduler(store=f"sqlite:///{tmp_path}/jobs.db", limits={"http": 2, "pace": rate(2, "1s")})

    async def fail():
        msg = "no disk"
        raise OSError(msg)

    async def echo(value=None):
        return value

    for name, task in {"nothing": nothing, "fail": fail, "echo": echo, "gate": gate}.items():
        s.register(name, task)
    async with s:
        yield s
        gate.opened.set()


def basic(scope):
    """Tell access by a token such as `ann:admin`."""
    from scheduler.web import Access  # noqa: PLC0415 - as a program does

    said = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
    name, _, scopes = said.partition(":")
    return Access(name, frozenset(scopes.split("+"))) if scopes else None


@pytest.fixture
async def address(s):
    """Serve the API on TCP, and name its address."""
    from scheduler.web import app  # noqa: PLC0415 - as a program does

    bound = listening()
    with served(app(s, access=basic), bound):
        yield address_of(bound)


@pytest.fixture
def client(address):
    """Open a client with every scope."""
    return Client(address, token=ADMIN)


class Here:
    """The scheduler of this process."""

    def __init__(self, s):
        self.s = s

    def add(self, func, schedule, **options):
        """Add a job of the owner that clients have."""
        return self.s.add(func, schedule, owner="api", **options)

    def history(self, job_id, **options):
        """Read records."""
        return from_thread.run(lambda: self.s.history(job_id, **options))

    def limits(self):
        """Return the limits."""
        return self.s.statistics().limits

    def settle(self):
        """Return when earlier changes are durable."""
        from_thread.run(self.s.flush)


class There:
    """The scheduler of another process."""

    def __init__(self, client):
        self.s = client
        self.add, self.history, self.limits = client.add, client.history, client.limits

    def settle(self):
        """Do nothing: what is answered is durable."""


@pytest.fixture(params=["here", "tcp", "unix", "mounted"])
async def w(request, s, tmp_path):
    """The world of a conformance test: a scheduler in this process, or behind its API on a real server."""
    if request.param == "here":
        yield Here(s)
        return
    from starlette.applications import Starlette  # noqa: PLC0415 - as a program does
    from starlette.routing import Mount  # noqa: PLC0415 - as a program does

    from scheduler.web import app  # noqa: PLC0415 - as a program does

    api = app(s, access=basic)
    prefix = "/jobs/control" if request.param == "mounted" else ""
    bound = listening(tmp_path / "api.sock" if request.param == "unix" else None)
    with served(Starlette(routes=[Mount(prefix, api)]) if prefix else api, bound):
        yield There(Client(address_of(bound, prefix), token=ADMIN))


@pytest.fixture
def beside(s):
    """Call a function in a thread, beside the loop of the scheduler."""

    async def beside(function, *args):
        with anyio.fail_after(60):
            return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True)

    return beside
