from __future__ import annotations


class SchedulerError(Exception):
    """The base of this package's errors."""


class InvalidJob(SchedulerError, ValueError):
    """A job cannot be made of these arguments. The message names the argument and what it should be.

    `path`: the wrong key in what `from_json` or `Scheduler.sync` reads, such as "retry.base". None: elsewhere.
    """

    path: str | None = None


class MalformedJob(InvalidJob):
    """A stored job cannot be read. The message names its id, the column and its value."""


class UnknownTask(SchedulerError, LookupError):
    """No task has this name. Register it before you add or load jobs that name it."""


class DuplicateJob(SchedulerError, ValueError):
    """A job with this id exists. Choose another id, or `on_conflict="update"`, `"replace"` or `"keep"`."""


class WrongOwner(SchedulerError, ValueError):
    """A job of this id has another owner, `owner` (None: code). Change it there, or choose another id."""

    owner: str | None = None


class JobNotFound(SchedulerError, KeyError):
    """No job has this id: never added, removed, or its schedule has ended."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quoted form


class AlreadyStopped(SchedulerError, RuntimeError):
    """The scheduler has stopped: make a new one."""


class TooManySubtasks(SchedulerError, RuntimeError):
    """A run returned more subtasks than allowed. It probably recurses without end."""


class NotASubtask(SchedulerError, TypeError):
    """A task returned a coroutine, a generator, or a nested list of subtasks: none of them runs."""


class ImpossibleTransition(SchedulerError):
    """A job's state does not allow this step. This is a defect of ours: please report it."""
