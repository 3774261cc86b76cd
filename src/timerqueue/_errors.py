class TimerQueueError(Exception):
    """The base of this package's errors."""


class LifecycleError(TimerQueueError, RuntimeError):
    """Started twice, used after it had stopped, or used in a fork of its process."""


class UnknownLimit(TimerQueueError, LookupError):
    """The pool lacks a limit that work needs: add it to `limits=`, or correct the name."""
