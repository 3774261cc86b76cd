"""Options as `Scheduler.add` takes them, one Policy for all jobs with equal ones."""

from __future__ import annotations

from typing import Any, Final

from schedule import Missed

from .._values import Delivery, Overlap, Policy
from .options import DEFAULT, policy_of, refuse_part

SHARED_POLICIES: Final = 1_000

_NAMES: Final = (
    "needs", "priority", "timeout", "retry", "overlap", "max_running", "missed", "grace", "catch_up", "delivery",
    "place", "where", "owner",
)  # fmt: skip
_DEFAULTS: Final = (
    (),
    0,
    None,
    None,
    Overlap.SKIP,
    None,
    Missed.LATEST,
    1.0,
    100,
    Delivery.AT_MOST_ONCE,
    None,
    None,
    None,
)


class Policies:
    """Jobs with equal options share one Policy."""

    def __init__(self) -> None:
        self._policies: dict[Any, Policy] = {}

    def __len__(self) -> int:
        return len(self._policies)

    def of(self, options: tuple[Any, ...]) -> Policy:
        """`options`: as in Scheduler.add. Raises InvalidJob."""
        if options == _DEFAULTS:
            return DEFAULT
        key = (options, *map(type, options))  # True equals 1, and must be refused
        try:
            policy = self._policies.get(key)
        except TypeError:  # needs may be a list, which cannot be hashed
            return policy_of(dict(zip(_NAMES, options, strict=True)))
        if policy is None:
            policy = policy_of(dict(zip(_NAMES, options, strict=True)))
            refuse_part(policy)
            if len(self._policies) >= SHARED_POLICIES:
                self._policies.clear()
            self._policies[key] = policy
        return policy
