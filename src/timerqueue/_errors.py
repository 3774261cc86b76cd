"""Errors of the timer queue, all below one base."""


class TimerQueueError(Exception):
    """The base of every error that this package raises on purpose."""


class LifecycleError(TimerQueueError, RuntimeError):
    """Something was started twice, used after it had stopped, or used in a fork of its process."""


class UnknownLimit(TimerQueueError, LookupError):
    """Work needs a limit that the pool does not have. Give it in `limits=`, or correct the name."""
