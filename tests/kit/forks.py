"""Forked children for tests: what a function says in a child of this process."""

import json
import os
import sys
import warnings


def in_fork(func):
    """Return what `func()` returns in a forked child, as JSON has it; an error as `error_of` tells it."""
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child = os.fork()
    if not child:
        os.close(reads)
        _answer(func, writes)
    os.close(writes)
    with open(reads, "rb") as pipe:  # noqa: PTH123 - a descriptor
        said = pipe.read()
    os.waitpid(child, 0)
    assert said, "the child has said nothing"
    return json.loads(said)


def _answer(func, writes):
    """Say what the function says, and end without anything that Python does at its end."""
    try:
        said = func()
    except BaseException as exc:  # noqa: BLE001 - it is told to the parent
        said = error_of(exc)
    os.write(writes, json.dumps(said).encode())
    sys.stdout.flush()
    os._exit(0)


def error_of(exc):
    """Return an error as the names of its classes, and its text."""
    return [[each.__name__ for each in type(exc).__mro__], str(exc)]


def refusal(call, *args, **options):
    """Return how `call` refuses, or what it answers."""
    try:
        answer = call(*args, **options)
        if hasattr(answer, "send"):  # a coroutine: its first step
            answer.send(None)
    except BaseException as exc:  # noqa: BLE001 - the test looks at it
        return error_of(exc)
    return repr(answer)
