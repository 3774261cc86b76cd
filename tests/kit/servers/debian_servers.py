"""Programs that Debian brings, and one of them as a server: PgBouncer before a PostgreSQL, on a Unix socket.

Where one is missing, its tests say so. PgBouncer refuses to run as root: then it runs as `nobody`, who owns the
PostgreSQL too. The other server is in beanstalkd_server.py.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from kit import wait_until

PACKAGES = {"beanstalkd": "beanstalkd", "pgbouncer": "pgbouncer", "faketime": "faketime", "prometheus": "prometheus"}
"""Programs, and the packages of Debian that bring them."""


def program(name):
    """Return the path of one of PACKAGES, or skip the test."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(f"needs the program {name} (Debian: apt-get install {PACKAGES[name]})")
    return found


class PgBouncer:
    """A pooler of transactions before a PostgreSQL, on a Unix socket. `server`: a PostgresServer that has started.

    `leads_to`: how it finds that server, if not by its folder. `users`: their names and passwords. `more`: settings.
    """

    def __init__(self, server, connections=2, *, leads_to=None, users='"postgres" ""\n', more=""):
        self.folder = Path(tempfile.mkdtemp(prefix="pooler-", dir=server.folder))  # whoever runs the server looks in
        self.dsn = f"host={self.folder} port=6432 user=postgres dbname=postgres"
        (self.folder / "users").write_text(users)
        (self.folder / "config.ini").write_text(
            f"[databases]\n* = {leads_to or f'host={server.folder}'}\n"
            f"[pgbouncer]\npool_mode = transaction\ndefault_pool_size = {connections}\n"
            f"listen_addr =\nunix_socket_dir = {self.folder}\nlisten_port = 6432\n"
            f"auth_type = trust\nauth_file = {self.folder}/users\n{more}"
        )
        user = {"user": "nobody", "extra_groups": []} if os.getuid() == 0 else {}
        for path in (self.folder, *self.folder.iterdir()) if user else ():
            os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
        command = [program("pgbouncer"), "-q", self.folder / "config.ini"]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL, **user)
        wait_until(self._listens)

    def _listens(self):
        """Whether it takes connections: its socket is there a little earlier."""
        with socket.socket(socket.AF_UNIX) as asking:
            return asking.connect_ex(str(self.folder / ".s.PGSQL.6432")) == 0

    def close(self):
        """End it and remove its folder."""
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self.folder)
