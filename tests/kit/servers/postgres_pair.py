"""A PostgreSQL and a standby that follows it, asynchronously unless the primary is told otherwise. It can fall behind,
and be promoted.
"""

import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psycopg

from postgres_server import PATIENCE, PostgresServer, until


class Pair:
    """`dsn` leads to whichever of the two takes writes."""

    def __enter__(self):
        with ExitStack() as stack:
            self.primary = stack.enter_context(PostgresServer())
            with tempfile.TemporaryDirectory(prefix="timerqueue-backup-") as folder:
                command = [self.primary.programs / "pg_basebackup", "--checkpoint=fast", "--no-sync"]
                options = ["--write-recovery-conf", f"--dbname={self.primary.dsn} application_name=standby"]
                data = Path(folder, "data")
                environment = self.primary.environment
                subprocess.run([*command, *options, "-D", data], check=True, timeout=PATIENCE, env=environment)
                self.standby = stack.enter_context(PostgresServer(template=data))
            self._stack = stack.pop_all()
        folders = f"{self.primary.folder},{self.standby.folder}"
        self.dsn = f"host={folders} user=postgres dbname=postgres target_session_attrs=read-write"
        return self

    def __exit__(self, *_):
        self._stack.close()

    def fall_behind(self):
        """Let the standby receive nothing more, once it has all that there is so far."""
        with psycopg.connect(self.primary.dsn, autocommit=True) as here:
            (place,) = here.execute("SELECT pg_current_wal_lsn()").fetchone()
            with psycopg.connect(self.standby.dsn, autocommit=True) as there:
                has_all = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
                until(lambda: there.execute(has_all, [place]).fetchone()[0], "the standby has all of it")
                there.execute("ALTER SYSTEM SET primary_conninfo = ''")
                there.execute("SELECT pg_reload_conf()")
            following = "SELECT FROM pg_stat_replication"
            until(lambda: not here.execute(following).fetchall(), "the standby follows no more")

    def fail_over(self):
        """The primary is gone, and the standby takes its place."""
        self.primary.stop("immediate")
        with psycopg.connect(self.standby.dsn, autocommit=True) as there:
            assert there.execute("SELECT pg_promote(true)").fetchone() == (True,)
