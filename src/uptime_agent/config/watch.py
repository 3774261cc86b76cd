"""A configuration without a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedule import Every

from ..checks import Clash, Mode, known_kinds
from ..toml import ConfigError, Problem, Section, Unfit
from .config import Config
from .limits import read_limits
from .target import Target, url_of


def watch_config(
    urls: Sequence[str], *, every: float, timeout: float, mode: Mode, environment: Mapping[str, str]
) -> Config:
    """Check these URLs, beginning at once. Raises ConfigError."""
    problems: list[Problem] = []
    targets: dict[str, Target] = {}
    for text in urls:
        try:
            url = url_of(text)
        except Unfit as exc:
            problems.append(Problem(0, str(exc)))
            continue
        kind = known_kinds().by_scheme[url.scheme]
        if str(url) in targets:
            problems.append(Problem(0, f"{url} is given twice"))
        try:
            check = kind.make(url=url)
        except Clash as exc:
            problems.append(Problem(0, f"{url}: {exc}"))
            continue
        targets[str(url)] = Target(
            name=str(url),
            kind=kind.name,
            check=check,
            schedule=Every(max(every, kind.least_interval)),
            timeout=timeout,
            mode=mode if kind.is_resolved else Mode.ANY,
            start="now",
            is_resolved=kind.is_resolved,
        )
    if problems:
        raise ConfigError("watch", problems)
    limits, warnings = read_limits(Section({}, (), "", {}), [kind.name for kind in known_kinds().every], environment)
    return Config(
        targets=tuple(targets.values()), limits=limits, warnings=(*warnings, *known_kinds().troubles.values())
    )
