"""What every test shares: how many processes run them, backends, a clock, Hypothesis without deadlines, PostgreSQL."""

import gc
import importlib.util
import itertools
import os
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings

import beanstalkd_server
from dealt import dealt
from in_memory import lie_in_memory
from kit import Recorder
from timerqueue.testing import ManualClock

lie_in_memory()  # before anybody asks for a temporary folder
pytest.register_assert_rewrite(
    "scheduler.testing", "uptime_agent.testing"
)  # so that failures of the public suites say what they compared

# A deadline measures the machine, not the code. Hypothesis brings the profile "ci" itself: fixed examples, no deadline.
settings.register_profile("local", deadline=None)
settings.register_profile("brief", settings.get_profile("ci"), max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=5_000)  # 50 times as much as by hand
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "local"))


def pytest_xdist_auto_num_workers(config):
    """Have four workers for each core, up to eight: but none for few tests, or for somebody who wants to look on.

    More than half of the time a test waits: for a disk, a server, another process. A worker imports and collects
    everything for itself, and its output is not seen. `-n 2` on the command line wins.
    """
    asked = vars(config.option)
    few = asked["keyword"] or asked.get("lf") or asked.get("stepwise") or not any(map(os.path.isdir, config.args))
    looks_on = asked["capture"] == "no" or asked["usepdb"]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if few or looks_on else min(4 * cores, 8)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Have each worker begin with what takes long."""
    if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
        items[:] = dealt(items, workers, lambda item: item.get_closest_marker("slow"), lambda item: item.path)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish():
    """Have the garbage collector pass over what is loaded: a million objects, most of them tests that wait."""
    gc.collect()
    gc.freeze()


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
    """Start a PostgreSQL for all tests of this session; see tests/postgres_server.py for what can be done to it."""
    spec = importlib.util.spec_from_file_location("postgres_server", Path(__file__).with_name("postgres_server.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.PostgresServer() as server:
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
    """Start a beanstalkd; see tests/beanstalkd_server.py for what can be done to it."""
    if why := beanstalkd_server.why_not():
        pytest.skip(why)
    with beanstalkd_server.BeanstalkdServer() as server:
        yield server
