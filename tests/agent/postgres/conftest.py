"""What the tests of probes share: a PostgreSQL of each version, started when the first test asks for it."""

import contextlib

import pytest

import postgres_versions


@pytest.fixture(scope="session")
def postgres_of():
    """Return the PostgreSQL of a major version, one for the session; where it cannot be had, the test is left out."""
    with contextlib.ExitStack() as stack:
        servers, missing = {}, {}

        def of(major):
            if major not in servers and major not in missing:
                try:
                    servers[major] = stack.enter_context(postgres_versions.server(major))
                except postgres_versions.Missing as error:
                    missing[major] = str(error)
            if major in missing:
                pytest.skip(missing[major])
            return servers[major]

        yield of


@pytest.fixture(scope="session", params=postgres_versions.WHEELS, ids="postgres{}".format)
def each_postgres(request, postgres_of):
    """Run the test on each version. A `PostgresServer` of tests/postgres_server.py."""
    return postgres_of(request.param)
