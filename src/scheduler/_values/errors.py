"""Errors of the scheduler, all below one base."""

from __future__ import annotations


class SchedulerError(Exception):
    """The base of every error that this package raises on purpose."""


class InvalidJob(SchedulerError, ValueError):
    """A job cannot be made of these arguments. The message names the argument and what it should be."""


class MalformedJob(InvalidJob):
    """A stored job cannot be read. The message names the job's id, the column and its value."""


class UnknownTask(SchedulerError, LookupError):
    """No task is registered under this name. Register the task before you add or load jobs that name it."""


class DuplicateJob(SchedulerError, ValueError):
    """A job with this id exists. Choose another id, or give `on_conflict="update"`, `"replace"` or `"keep"`."""


class JobNotFound(SchedulerError, KeyError):
    """No job has this id: it was never added, was removed, or its schedule has ended."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quoted form


class AlreadyStopped(SchedulerError, RuntimeError):
    """The scheduler has stopped. A scheduler runs once: make a new one."""


class TooManySubtasks(SchedulerError, RuntimeError):
    """A run returned more subtasks than the scheduler allows. It probably recurses without end."""


class NotASubtask(SchedulerError, TypeError):
    """A task returned work that the scheduler does not run: a coroutine, a generator, or a nested list of subtasks."""


class ImpossibleTransition(SchedulerError):
    """A job's state does not allow this step. This is a defect of ours: please report it."""
