"""Ten thousand different cron expressions of the kinds that people write, the same ones every time."""

from collections.abc import Callable
from datetime import UTC, datetime

NOW = datetime(2026, 3, 1, 11, 58, 30, tzinfo=UTC)
DAYS = 336
MOMENTS = 24 * 60 * DAYS
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

KINDS: tuple[Callable[[int, int, int], str], ...] = (
    lambda minute, hour, _: f"{minute} {hour} * * *",
    lambda minute, hour, day: f"{minute} {hour} * * {WEEKDAYS[day % 7]}",
    lambda minute, hour, day: f"{minute} {hour} {1 + day % 28} * *",
    lambda minute, hour, day: f"{minute} {hour} {1 + day % 28} {1 + day % 12} *",
    lambda minute, hour, _: f"{minute % 30},{30 + minute % 30} {hour} * * mon-fri",
    lambda minute, hour, day: f"{minute % 30}-59/{2 + day % 14} {hour}-23 * * *",
    lambda minute, hour, day: f"*/{2 + day % 14} {hour} {1 + minute % 28} * *",
    lambda minute, hour, _: f"{minute} {hour % 12},{12 + hour % 12} * * sat,sun",
)


def expressions(count: int) -> list[str]:
    """`count` different expressions, all with five fields, the kinds taking turns."""
    found: dict[str, None] = {}
    for step in range(MOMENTS):
        # A prime stride visits every moment once, in an order without a pattern.
        minutes, day = divmod(step * 611_953 % MOMENTS, DAYS)
        hour, minute = divmod(minutes, 60)
        found[KINDS[step % len(KINDS)](minute, hour, day)] = None
        if len(found) == count:
            return list(found)
    raise ValueError(f"no {count} different expressions: ask for fewer than {len(found)}")
