"""Errors of the scheduler, all below one base."""

from __future__ import annotations


class SchedulerError(Exception):
    """The base of every error that this package raises on purpose."""


class InvalidJob(SchedulerError, ValueError):
    """A job cannot be made of what was given. The message names the argument and what it should be."""


class MalformedJob(InvalidJob):
    """A stored job cannot be read. The message names the job's id, the column and what it holds."""


class UnknownTask(SchedulerError, LookupError):
    """No callable is registered under this name: register it before jobs that name it are added or loaded."""


class DuplicateJob(SchedulerError, ValueError):
    """There is a job of this id. Choose another, or say what should happen with `on_conflict="replace"` or `"keep"`."""


class JobNotFound(SchedulerError, KeyError):
    """There is no job of this id: it was never added, was removed, or its schedule has ended."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quoted form


class AlreadyStopped(SchedulerError, RuntimeError):
    """The scheduler has stopped. A scheduler runs once: make a new one."""


class TooManySubtasks(SchedulerError, RuntimeError):
    """A run returned more subtasks than the scheduler allows. It probably recurses without end."""


class NotASubtask(SchedulerError, TypeError):
    """A task returned subtasks in what is no flat list of them, or a coroutine or generator that nobody runs."""


class ImpossibleTransition(SchedulerError):
    """A job was told to go where its state has no way to. A defect of this package: please report it."""
