"""The interpreters of the contenders: a virtual environment for each peer, made when first needed and kept."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from threading import Lock

from attrs import frozen

from .catalogue import Contender

DEFAULT_FOLDER = Path("~/.cache/timerqueue-bench")
STAMP = "installed-requirement"

_one_at_a_time = Lock()


class EnvironmentFailed(Exception):
    """The peer could not be installed; the message is the last line that pip printed."""


@frozen
class Environments:
    """The folder in which the peers' environments stand."""

    folder: Path

    def command(self, contender: Contender) -> list[str]:
        """The start of the command line that runs the contender's script; its environment exists afterwards.

        Raises EnvironmentFailed.
        """
        if contender.is_ours:
            return [sys.executable]
        python = sys.executable if contender.requirement is None else str(self._prepared(contender.requirement))
        # -E and -s: what PYTHONPATH or the user's site holds for us is none of a peer's.
        return [python, "-E", "-s"]

    def _prepared(self, requirement: str) -> Path:
        with _one_at_a_time:
            return self._made(requirement)

    def _made(self, requirement: str) -> Path:
        folder = self.folder / (re.sub(r"\W+", "-", requirement) + "-py" + ".".join(map(str, sys.version_info[:3])))
        python = folder / "bin" / "python"
        stamp = folder / STAMP
        if not stamp.exists() or stamp.read_text() != requirement:
            print(f"making an environment for {requirement} in {folder}", file=sys.stderr)
            venv.create(folder, clear=True, with_pip=True)
            _install(python, requirement)
            # Written last, so that an interrupted installation is begun anew.
            stamp.write_text(requirement)
        return python


def _install(python: Path, requirement: str) -> None:
    variables = {name: value for name, value in os.environ.items() if name not in {"PYTHONHOME", "PYTHONPATH"}}
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", *requirement.split()],
        env=variables,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise EnvironmentFailed((done.stderr.strip() or f"pip ended with status {done.returncode}").splitlines()[-1])
