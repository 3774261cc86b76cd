"""The command `timerqueue` with a planted defect. `beside_healthy.py --defect` shows that the judge finds it.

    python3 tests/lab/beside/beside_defects.py DEFECT[:SECONDS] run FILE --json

A defect strikes with every twentieth request to the push port. SECONDS: how long it holds the loop up.
"""

import os
import sys
import threading
import time
from functools import cache
from itertools import count

from attrs import evolve

from uptime_agent.__main__ import main
from uptime_agent.checks import Status, TargetCheck
from uptime_agent.push import server

EVERY = 20
BLOCK = 0.15
"""Seconds for which the loop is held up, if the command names none."""
LEAK = 40_000_000
"""Bytes."""


_kept = []


def works(seconds):
    """Keep the loop busy. `seconds`: of CPU."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def sleeps(seconds):
    """Wait on the loop, and use no CPU."""
    time.sleep(seconds)


def keeps_the_interpreter(seconds):
    """Keep the interpreter in another thread: one call of C, during which no other thread runs Python."""
    threading.Thread(target=sum, args=(range(_length_of(seconds)),)).start()


@cache
def _length_of(seconds, tried=1_000_000):
    """Return how many numbers `sum` adds up in that time."""
    began = time.thread_time()
    sum(range(tried))
    return round(tried * seconds / (time.thread_time() - began))


def leaks(_):
    """Take memory, and never free it."""
    _kept.append(b"x" * LEAK)


def ends(_):
    """End the process with status 0."""
    os._exit(0)


def marks_down(_):
    """Let the next check find its target down."""
    _kept.append("down")


def raises(_):
    """Raise an error that no boundary expects."""
    raise ZeroDivisionError


DEFECTS = {each.__name__: each for each in (works, sleeps, keeps_the_interpreter, leaks, ends, marks_down, raises)}


def plant(name, seconds=BLOCK):
    """Plant a defect."""
    defect = DEFECTS[name]
    numbers, read = count(1), server.read_request

    async def read_request(stream):
        request = await read(stream)
        if next(numbers) % EVERY == 0:
            defect(float(seconds))
        return request

    server.read_request = read_request
    if defect is marks_down:
        plant_mark()


def plant_mark():
    """Let checks return a planted status."""
    run = TargetCheck.run

    async def run_marked(self):
        found = await run(self)
        return evolve(found, status=Status.DOWN, error="planted") if _kept and _kept.pop() else found

    TargetCheck.run = run_marked


if __name__ == "__main__":
    plant(*sys.argv.pop(1).split(":"))
    main()
