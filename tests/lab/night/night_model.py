"""What people should hear of a target, by what its checks have found. It knows nothing of the agent but its rules.

a first failure of what was well     is tried again, and decides nothing
a change of what has stood long      is believed at once: three checks are long
a change of what has not             makes the target changeable, until three in a row agree
an incident                          begins with a failure that decides, and ends when the target stands as up
"""

from attrs import define, field

from night_world import ATTEMPTS

LONG = 3
UP, DOWN, CHANGEABLE = "up", "down", "changeable"


@define
class Incident:
    """`began`, `ended`: as people hear of them, in UTC seconds. `opened`, `closed`: seconds since the night began."""

    began: float
    opened: float
    ended: float | None = None
    closed: float | None = None
    is_gone: bool = False
    """Its target was taken out of the configuration."""


@define
class Model:
    """One target. `incidents`: all that there should be, in order."""

    standing: str | None = None
    since: float = 0.0
    checks: int = 0
    tries: int = 0
    latest: list[bool] = field(factory=list)
    incidents: list[Incident] = field(factory=list)

    @property
    def open(self):
        return self.incidents[-1] if self.incidents and self.incidents[-1].ended is None else None

    def found(self, is_up, wall, now):
        """Take in what a check has found that ended at `wall`, UTC seconds."""
        may_go_on = self.tries > 0 or self.standing in (None, UP)
        if not is_up and may_go_on and self.tries + 1 < ATTEMPTS:
            self.tries += 1
            if self.standing is None:
                self._stand(DOWN, wall)
            else:
                self.checks += 1
            return
        self.tries = 0
        self._move(is_up, wall)
        if not is_up and self.open is None:
            self.incidents.append(Incident(self.since if self.standing == DOWN else wall, now))
        elif self.standing == UP and self.open is not None:
            self.open.closed, self.open.ended = now, wall

    def gone(self, wall, now):
        """Take in that the target is not checked any more. Should it come back, it begins anew."""
        if self.open is not None:
            self.open.is_gone, self.open.closed, self.open.ended = True, now, wall
        self.standing, self.checks, self.tries, self.latest = None, 0, 0, []

    def _move(self, is_up, wall):
        status = UP if is_up else DOWN
        if self.standing == CHANGEABLE:
            self.latest = [*self.latest[1 - LONG :], is_up]
            if len(self.latest) == LONG and len(set(self.latest)) == 1:
                self._stand(status, wall)
            return
        if self.standing == status:
            self.checks += 1
        elif self.standing is None or self.checks >= LONG:
            self._stand(status, wall)
        else:
            self.standing, self.latest = CHANGEABLE, [is_up]

    def _stand(self, status, wall):
        self.standing, self.since, self.checks = status, wall, 1
