"""Evidence made by hand, for tests of the judge of fleets."""

from fleet_evidence import Begun, Evidence, Record

SECOND = 1_000_000
MINUTE = 60_000_000


def begun(job="once-1", due=0, *, attempt=1, by=1, at=None, number=1, process=1):
    """A run that begins when it is due, unless another instant is named."""
    return Begun(job, due, attempt, by << 32 | number, due if at is None else at, process)


def evidence(*runs, ended=True, **more):
    """Runs that have ended at once, unless they are said not to, of jobs that are due each minute."""
    ends = [(each.job, each.due, each.fence, each.at) for each in runs] if ended is True else ended
    given = {"every": MINUTE, "limit": 2, "batch": 1, "quiet": max(each.due for each in runs) + 1} | more
    return Evidence(begun=runs, ended=ends, **given)


def record(job, due, outcome="crashed", by=1, last_due=None, reason=""):
    return Record(job, due, outcome, by << 32 | 9, due if last_due is None else last_due, reason)
