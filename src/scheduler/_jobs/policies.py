"""One Policy for all jobs with the same options, because there are many jobs and few sets of options."""

from __future__ import annotations

from typing import Any, Final

from schedule import Missed

from .._values.policy import Delivery, Overlap, Policy
from .options import DEFAULT, policy_of

SHARED_POLICIES: Final = 1_000
"""Distinct sets of options that are kept to be shared."""

_NAMES: Final = (
    "needs", "priority", "timeout", "retry", "overlap", "max_running", "missed", "grace", "catch_up", "delivery",
)  # fmt: skip
_DEFAULTS: Final = ((), 0, None, None, Overlap.SKIP, None, Missed.LATEST, 1.0, 100, Delivery.AT_MOST_ONCE)


class Policies:
    """Those of one scheduler."""

    def __init__(self) -> None:
        self._policies: dict[Any, Policy] = {}

    def __len__(self) -> int:
        return len(self._policies)

    def of(self, options: tuple[Any, ...]) -> Policy:
        """The policy for the options of Scheduler.add, in the order in which they stand there. Raises InvalidJob."""
        if options == _DEFAULTS:
            return DEFAULT
        key = (options, *map(type, options))  # True equals 1, and is none
        try:
            policy = self._policies.get(key)
        except TypeError:  # needs that cannot be hashed, such as a list
            return policy_of(dict(zip(_NAMES, options, strict=True)))
        if policy is None:
            policy = policy_of(dict(zip(_NAMES, options, strict=True)))
            if len(self._policies) >= SHARED_POLICIES:
                self._policies.clear()
            self._policies[key] = policy
        return policy
