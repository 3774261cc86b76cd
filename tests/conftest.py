"""What every test shares: the backends that async tests run on, and Hypothesis without deadlines."""

import os

import pytest
from hypothesis import settings

# A deadline measures the machine, not the code. Hypothesis brings the profile "ci" itself: fixed examples, no deadline.
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if "CI" in os.environ else "local")


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    """Run each async test on both backends."""
    return request.param
