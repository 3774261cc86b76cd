"""Servers that Debian brings: PgBouncer before a PostgreSQL, and Beanstalkd. Where one is missing, its tests say so.

Each is ended by `close`. PgBouncer refuses to run as root: then it runs as `nobody`, who owns the PostgreSQL too.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from kit import PATIENCE, wait_until

PACKAGES = {"beanstalkd": "beanstalkd", "pgbouncer": "pgbouncer", "faketime": "faketime"}
"""Programs, and the packages of Debian that bring them."""


def program(name):
    """Return the path of one of PACKAGES, or skip the test."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(f"needs the program {name} (Debian: apt-get install {PACKAGES[name]})")
    return found


class PgBouncer:
    """A pooler of transactions before a PostgreSQL, on a Unix socket. `server`: a PostgresServer that has started."""

    def __init__(self, server, connections=2):
        self.folder = Path(tempfile.mkdtemp(prefix="pooler-", dir=server.folder))  # whoever runs the server looks in
        self.dsn = f"host={self.folder} port=6432 user=postgres dbname=postgres"
        (self.folder / "users").write_text('"postgres" ""\n')
        (self.folder / "config.ini").write_text(
            f"[databases]\n* = host={server.folder}\n"
            f"[pgbouncer]\npool_mode = transaction\ndefault_pool_size = {connections}\n"
            f"listen_addr =\nunix_socket_dir = {self.folder}\nlisten_port = 6432\n"
            f"auth_type = trust\nauth_file = {self.folder}/users\n"
        )
        user = {"user": "nobody", "extra_groups": []} if os.getuid() == 0 else {}
        for path in (self.folder, *self.folder.iterdir()) if user else ():
            os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
        command = [program("pgbouncer"), "-q", self.folder / "config.ini"]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **user)
        wait_until((self.folder / ".s.PGSQL.6432").exists)

    def close(self):
        """End it and remove its folder."""
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self.folder)


class Beanstalkd:
    """Beanstalkd on a port of 127.0.0.1 that stays the same over its restarts.

    `log`: whether it keeps what it has in a folder of its own. `shift`: by how much its wall clock is off, as faketime
    takes it ("+1h"); `options` are given to it as they are.
    """

    def __init__(self, *, log=False, shift=None, options=()):
        self._folder = Path(tempfile.mkdtemp(prefix="beanstalkd-")) if log else None
        self._shift = shift
        self._options = [*options, *(["-b", self._folder] if log else [])]
        self.port = free_port()
        self._process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        """Of its process."""
        return self._process.pid

    def start(self):
        """Start it and wait until it answers."""
        command = [program("beanstalkd"), "-l", "127.0.0.1", "-p", str(self.port), *map(str, self._options)]
        if self._shift:
            command = [program("faketime"), "-f", self._shift, *command]
        self._process = subprocess.Popen(command)
        wait_until(self._answers)

    def stop(self, blow=signal.SIGKILL):
        """End it, at once unless another signal is named."""
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(blow)
        self._process.wait(PATIENCE)

    def restart(self, *, shift=None, forgetting=False):
        """End it at once and start it again: with another clock, or with a log that is empty."""
        self.stop()
        if forgetting and self._folder:
            shutil.rmtree(self._folder)
            self._folder.mkdir()
        self._shift = shift or self._shift
        self.start()

    @contextlib.contextmanager
    def frozen(self):
        """It stands still for as long as the block lasts."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def close(self):
        """End it and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.stop()
        if self._folder:
            shutil.rmtree(self._folder)

    def _answers(self):
        assert self._process.poll() is None, f"beanstalkd ended with status {self._process.poll()}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            connection.sendall(b"stats\r\n")
            return connection.recv(2) == b"OK"
        return False


def free_port():
    """Find a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]
