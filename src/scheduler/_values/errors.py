"""Errors of the scheduler, all below one base."""

from __future__ import annotations


class SchedulerError(Exception):
    """The base of every error that this package raises on purpose."""


class InvalidJob(SchedulerError, ValueError):
    """A job cannot be made of what was given. The message names the argument and what it should be."""


class MalformedJob(InvalidJob):
    """A stored job cannot be read. The message names the job's id, the column and what it holds."""


class UnknownTask(SchedulerError, LookupError):
    """Nothing is registered under this name. Register the task before you add or load jobs that name it."""


class DuplicateJob(SchedulerError, ValueError):
    """There is a job of this id. Choose another id, or give `on_conflict="update"`, `"replace"` or `"keep"`."""


class JobNotFound(SchedulerError, KeyError):
    """There is no job of this id: it was never added, was removed, or its schedule has ended."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quoted form


class AlreadyStopped(SchedulerError, RuntimeError):
    """The scheduler has stopped. A scheduler runs once: make a new one."""


class TooManySubtasks(SchedulerError, RuntimeError):
    """A run returned more subtasks than the scheduler allows. It probably recurses without end."""


class NotASubtask(SchedulerError, TypeError):
    """A task returned work that nobody would run: a coroutine, a generator, or subtasks that are not in a flat list."""


class ImpossibleTransition(SchedulerError):
    """A job was told to take a step that its state does not allow. This is a defect of ours: please report it."""
