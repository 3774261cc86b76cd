"""What every test shares: how many processes run them, backends, a clock, Hypothesis without deadlines, PostgreSQL."""

import gc
import itertools
import os

import psycopg
import pytest
from hypothesis import given, settings, strategies

import beanstalkd_server
import tiers
from dealt import dealt
from in_memory import lie_in_memory
from kit import Recorder
from postgres_server import PostgresServer, why_not
from timerqueue.testing import ManualClock

lie_in_memory()  # before anybody asks for a temporary folder
pytest.register_assert_rewrite(
    "scheduler.testing", "uptime_agent.testing"
)  # so that failures of the public suites say what they compared

# A deadline measures the machine, not the code. Hypothesis brings the profile "ci" itself: fixed examples, no deadline.
settings.register_profile("local", deadline=None)
settings.register_profile("brief", settings.get_profile("ci"), max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=5_000)  # 50 times as much as by hand
LEFT = pytest.StashKey()
"""How many tests are left to `dev.py test --all`, for each reason."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Decide which tests run, and how many examples of each property, before a test is imported."""
    if "TESTS" not in os.environ and tiers.are_named(config.option, config.args):
        os.environ["TESTS"] = "all"
    usual = "brief" if not tiers.runs_all() else "ci" if "CI" in os.environ else "local"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or usual)


def pytest_xdist_auto_num_workers(config):
    """Have two workers for each core, eight at most: more than half of the time a test waits for servers and processes.

    Few tests, or a person who wants to look on, have none: a worker imports and collects everything for itself, and
    its output is not seen. `-n 2` on the command line wins.
    """
    looks_on = config.option.capture == "no" or config.option.usepdb
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if looks_on or tiers.are_few(config.option, config.args) else min(2 * cores, 8)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what is for `--all`, and have each worker begin with what takes long."""
    if not tiers.runs_all():
        items[:], left, config.stash[LEFT] = tiers.split(items)
        config.hook.pytest_deselected(items=left)
    if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
        items[:] = dealt(items, workers, lambda item: item.get_closest_marker("slow"), lambda item: item.path)


def pytest_sessionfinish(session):
    """Have a worker report what it has left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = dict(session.config.stash.get(LEFT, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take that report: every worker collects, and leaves out, the same."""
    node.config.stash[LEFT] = getattr(node, "workeroutput", {}).get("left", {})


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter, config):
    """Say at the end, in a line each, what this machine lacks and what is left to `--all`."""
    yield
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    for line in (tiers.missing(skipped), tiers.told(config.stash[LEFT]) if config.stash.get(LEFT, {}) else ""):
        if line:
            terminalreporter.write_line(line)


@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    """Have the garbage collector rest: it would pass over the tests again and again while they are loaded."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Have the garbage collector skip everything loaded so far: a million objects, most of them tests that wait.

    Hypothesis makes its source of randomness in its first test, and warns if the collector does not know who holds it.
    From Python 3.14 on, that holder is frozen by then. So a first test runs before.
    """
    given(strategies.none())(lambda _: None)()
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable():
    """Let a worker report what hostile tests log: text that cannot be encoded would end the whole run."""
    return encodable((yield))


def encodable(data):
    """Return the same with lone surrogates spelled out, however deep they lie."""
    match data:
        case str():
            return data.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {name: encodable(value) for name, value in data.items()}
        case list() | tuple():
            return type(data)(map(encodable, data))
    return data


@pytest.fixture(scope="module", params=os.environ.get("BACKENDS", "asyncio trio").split())
def anyio_backend(request):
    """Run each async test on both backends, or on those that the environment names."""
    return request.param


@pytest.fixture
def clock():
    """A clock that stands still until it is told to move."""
    return ManualClock()


@pytest.fixture
def events():
    """A listener that remembers what it is told."""
    return Recorder()


@pytest.fixture(scope="session")
def postgres_server():
    """Start a PostgreSQL for all tests of this session; see postgres_server.py for what can be done to it."""
    if why := why_not():
        pytest.skip(why)
    with PostgresServer() as server:
        with psycopg.connect(server.dsn, autocommit=True) as hand:
            # As for logical replication. From now on PostgreSQL changes and deletes no row without a primary key.
            hand.execute("CREATE PUBLICATION everything FOR ALL TABLES")
        yield server


@pytest.fixture
def postgres_schema(numbers=itertools.count(1)):  # noqa: B008 - one count for the session
    """Name a schema that no test has used."""
    return f"test_{next(numbers)}"


@pytest.fixture
def broker():
    """Start a beanstalkd; see tests/kit/servers/beanstalkd_server.py for what can be done to it."""
    if why := beanstalkd_server.why_not():
        pytest.skip(why)
    with beanstalkd_server.BeanstalkdServer() as server:
        yield server
