"""The script that enters Pythons of Debian unstable says in one line what it lacks."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "pythons"


def asked(*args, **options):
    """Run the script as text, which also somebody can read who may not look into this folder."""
    command = ["/bin/bash", "-c", SCRIPT.read_text("utf-8"), ".ci/pythons", *args]
    ended = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, **options)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["2.7", "true"], "no Python '2.7' here: one of 3.14 3.15"),
        (["3.14"], "say which Python and what it runs: .ci/pythons VERSION COMMAND..."),
    ],
)
def test_a_wrong_call_is_told_what_is_right(args, reason):
    """Nothing has been fetched by then."""
    assert asked(*args) == (2, "", f".ci/pythons: {reason}\n")


def test_a_machine_without_the_programs_of_debian_is_told_which():
    """The first one that is missing."""
    status, _, told = asked("3.14", "true", env={"PATH": "/nowhere"})
    assert (status, told) == (2, ".ci/pythons: apt-get is missing: this works on Debian and its kin only\n")


@pytest.mark.skipif(not Path("/usr/bin/apt-get").exists(), reason="needs Debian")
def test_a_user_who_is_not_root_is_told_so():
    """Before anything is fetched that could not be entered."""
    nobody = {"user": 65534} if os.getuid() == 0 else {}
    status, _, told = asked("3.14", "true", **nobody)
    assert status == 2
    assert told.startswith(".ci/pythons: chroot needs root, and this is ")
    assert told.count("\n") == 1
