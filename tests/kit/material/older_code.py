"""Code of earlier versions, out of the history of this checkout: its processes run beside those of today."""

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def code_of(commit, folder):
    """Return where the code of that commit is, unpacked in that folder. Put it first on the PYTHONPATH of a process."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"needs the history of the repository, for its commit {commit[:7]}: {packed.stderr.decode()}")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"
