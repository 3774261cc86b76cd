"""A scheduler over a file of SQLite whose jobs come from a file, from callers of its API and from code; it may die."""

import sqlite3
from itertools import count
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from asgi import Caller
from kit import nothing
from scheduler import JobSpec, JobState, Scheduler, WrongOwner, export_json, export_toml, read_jobs
from scheduler.web import Access, app

FILE = "file:jobs.toml"
CODE = "of code"


def spec_of(id, hours):
    """Return a job that starts every so many hours."""
    return JobSpec(id, "nothing", f"@every {hours}h", args=[hours])


class Life:
    """One process after another, over one store. Each verb returns once it is acknowledged."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._numbers = count(1)
        self._path = self._folder / "jobs-0.db"
        self._portal_of = start_blocking_portal("asyncio")
        self._portal = self._portal_of.__enter__()
        self._begin()

    def _begin(self):
        s = Scheduler(store=f"sqlite:///{self._path}")
        s.register("nothing", nothing)
        s.add("nothing", "@every 1h", id=CODE, on_conflict="update")
        self._running = self._portal.wrap_async_context_manager(s)
        self.s = self._running.__enter__()
        self._portal.call(self.s.flush)
        self._call = Caller(app(s, access=lambda _: Access("ann", "admin")))

    def restart(self):
        """Stop in order, and begin again."""
        self._running.__exit__(None, None, None)
        self._begin()

    def kill(self, meanwhile=None):
        """Begin again with what the store holds at this moment, as kill -9 leaves it.

        `meanwhile`: arguments of a request that is under way then.
        """
        asked = None if meanwhile is None else self._portal.start_task_soon(self._asked, *meanwhile)
        left = self._folder / f"jobs-{next(self._numbers)}.db"
        with sqlite3.connect(self._path) as source, sqlite3.connect(left) as target:
            source.backup(target)
        source.close()
        target.close()
        if asked is not None:
            asked.result()
        self._running.__exit__(None, None, None)
        self._path = left
        self._begin()

    async def _asked(self, method, target, body=None):
        return await self._call(method, target, body)

    def ask(self, method, target, body=None):
        """Ask the API, and return the status."""
        return self._portal.call(self._asked, method, target, body).status

    def reload(self, jobs):
        """Take these jobs as those of the file. False: one belongs to another owner, and nothing has changed."""
        try:
            self.s.sync([spec_of(id, hours) for id, hours in jobs.items()], owner=FILE)
        except WrongOwner:
            return False
        self._portal.call(self.s.flush)
        return True

    def found(self):
        """Return (owner, hours, whether it is paused) of each job by id."""
        self._portal.call(self.s.turn)
        jobs = [job for job in self.s.jobs() if job.id != CODE]
        return {job.id: (job.owner, job.args[0], job.state is JobState.DISABLED) for job in jobs}

    def exports_the_same(self, owner):
        """Tell whether the owner's jobs are the same after an export, in each form."""
        for export in (export_json, export_toml):
            told = self.s.sync(read_jobs(export(self.s.jobs(), owner=owner)), owner=owner, dry_run=True)
            if told.added or told.changed or told.removed:
                return False
        return True

    def end(self):
        """Stop."""
        self._running.__exit__(None, None, None)
        self._portal_of.__exit__(None, None, None)
