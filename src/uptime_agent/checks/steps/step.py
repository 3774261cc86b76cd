"""A check of several steps, as a value."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from ...text import Url
from ..contract import Attempt, Check, CheckFailed, Finding
from ..http import HttpCheck


@frozen
class Step:
    """`is_always`: it runs after failures too. `timeout`: seconds; None: what is left."""

    name: str
    check: Check
    position: int = 0
    is_always: bool = False
    timeout: float | None = None

    @property
    def needs(self) -> set[str]:
        """Names of texts that it needs."""
        return self.check.needs_texts if isinstance(self.check, HttpCheck) else set()

    @property
    def hands_on(self) -> set[str]:
        """Names of texts that it hands on."""
        return {each.name for each in self.check.take} if isinstance(self.check, HttpCheck) else set()

    def filled(self, values: Mapping[str, str]) -> Check:
        """Fill texts in. Raises CheckFailed if one does not fit."""
        return self.check.filled(values) if isinstance(self.check, HttpCheck) else self.check


@frozen
class StepsCheck:
    """Up if all steps are. `StepsRun` asks them."""

    steps: tuple[Step, ...]

    @property
    def url(self) -> Url:
        """Where the first step looks."""
        return self.steps[0].check.url

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show, besides handed-on ones."""
        return frozenset[str]().union(*(step.check.secrets for step in self.steps))

    @property
    def verify(self) -> bool:
        """Whether all steps verify certificates."""
        return all(getattr(step.check, "verify", True) for step in self.steps)

    async def attempt(self, at: Attempt) -> Finding:
        """Raise CheckFailed: steps have no common address."""
        raise CheckFailed(f"a check of {len(self.steps)} steps is not asked at one address ({at.address})")
