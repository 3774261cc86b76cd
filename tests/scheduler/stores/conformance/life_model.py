"""What the jobs of a program owe, as seen from outside, and what must hold each time a run begins.

The model is told what begins, what is cut off, and which verbs give up what. It knows nothing of how a scheduler works.
Test files load this from beside them: below tests nothing is a package.
"""

from attrs import Factory, define

SLACK = 0.001
"""Seconds that floating point may cost."""


@define
class Model:
    """What is known from outside. Ticks are (job, due in UTC microseconds); instants are monotonic seconds."""

    owed: dict = Factory(dict)
    """The attempt that was cut off, by tick."""
    given_up: dict = Factory(dict)
    """The same for ticks that a verb has given up; their records say so."""
    cut_off: dict = Factory(dict)
    """The last attempt that was found RUNNING after a death, whether it had begun or not, by tick."""
    never_owed: set = Factory(set)
    """Ticks that were cut off, and of which it turned out that nobody wants them again."""
    failed: set = Factory(set)
    """(tick, attempt) that failed by itself: `retry` may try it again."""
    begun: dict = Factory(dict)
    """All attempts, by tick."""
    rest_until: dict = Factory(dict)
    """Of jobs under which a process has died."""
    by_hand: set = Factory(set)
    """Ticks that somebody has asked for, and what comes a microsecond later."""
    promised: dict = Factory(dict)
    """Until when by the wall clock a start stands that somebody has set, by job."""

    def begins(self, tick, attempt, now):
        """A run has begun."""
        job = tick[0]
        attempts = self.begun.setdefault(tick, [])
        assert attempt not in attempts, f"attempt {attempt} at {tick} begins twice"
        assert tick not in self.given_up, f"{tick} was given up and begins again"
        assert tick not in self.never_owed, f"{tick} was cut off, delivery is at most once, and it begins again"
        attempts.append(attempt)
        rest = self.rest_until.get(job, 0)
        if tick in self.owed:
            assert attempt == self.owed[tick] + 1, f"attempt {attempt} at {tick} follows {self.owed[tick]}"
            older = [each for each in self.owed if each[0] == job and each < tick]
            assert not older, f"{tick} begins before {older}"
            assert now >= rest - SLACK, f"{tick} is tried again {rest - now} s before the end of the floor"
            del self.owed[tick]
        elif attempt > 1:
            assert (tick, attempt - 1) in self.failed, f"attempt {attempt} at {tick}, and nothing had failed"
        elif tick not in self.by_hand:
            waiting = [each for each in self.owed if each[0] == job]
            assert not waiting, f"the regular {tick} begins before what is owed: {waiting}"
            assert now >= rest - SLACK, f"{tick} begins {rest - now} s before the end of the floor"

    def asked_for(self, job, now_us):
        """Somebody has called run_now."""
        self.by_hand.update((job, now_us + later) for later in range(-5, 6))

    def give_up(self, job):
        """What the job owes is owed no more."""
        for tick in [tick for tick in self.owed if tick[0] == job]:
            self.given_up[tick] = self.owed.pop(tick)

    def forget(self, job):
        """The job is gone, and nothing of it is known of another of its id."""
        self.give_up(job)
        self.rest_until.pop(job, None)
        self.promised.pop(job, None)
