"""A build of Python on which nothing is proven is refused before anything runs."""

import subprocess
import sys

import pytest

from timerqueue._gil import check_build

REFUSED = "does not run on a free-threaded build of Python, and this is one of 3.14.2: it relies on the GIL"


@pytest.mark.parametrize(
    "version",
    [
        "3.14.2 free-threading build (main, Dec  5 2025, 16:49:16) [GCC 15.2.0]",
        "3.14.2 experimental free-threading build (main, Dec  5 2025, 16:49:16) [Clang 20.1.4 ]",
    ],
)
def test_a_free_threaded_build_is_refused_with_its_version(version):
    """Python's own documentation names these words as the way to tell."""
    with pytest.raises(ImportError, match=REFUSED):
        check_build(version)


@pytest.mark.parametrize("package", ["timerqueue", "scheduler"])
def test_the_packages_that_run_something_cannot_be_imported_there(package):
    """The error is the last line that the user reads."""
    version = "3.14.2 free-threading build (main)"
    program = f"import anyio, attrs, croniter, sys; sys.version = {version!r}; import {package}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert REFUSED in ended.stderr.splitlines()[-1]


def test_this_build_is_fine():
    """Otherwise no other test would run."""
    check_build(sys.version)
