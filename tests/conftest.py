"""What every test shares: the backends that async tests run on, Hypothesis without deadlines, a PostgreSQL."""

import importlib.util
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("scheduler.testing")  # so that failures of the public suites say what they compared

# A deadline measures the machine, not the code. Hypothesis brings the profile "ci" itself: fixed examples, no deadline.
settings.register_profile("local", deadline=None)
settings.register_profile("brief", settings.get_profile("ci"), max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "local"))


@pytest.fixture(scope="module", params=os.environ.get("BACKENDS", "asyncio trio").split())
def anyio_backend(request):
    """Run each async test on both backends, or on those that the environment names."""
    return request.param


@pytest.fixture(scope="session")
def postgres_server():
    """Start a PostgreSQL for all tests of this session; see tests/postgres_server.py for what can be done to it."""
    spec = importlib.util.spec_from_file_location("postgres_server", Path(__file__).with_name("postgres_server.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_schema(numbers=itertools.count(1)):  # noqa: B008 - one count for the session
    """Name a schema that no test has used."""
    return f"test_{next(numbers)}"
