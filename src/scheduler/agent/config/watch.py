"""A configuration without a file: URLs, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedule import Every

from ..checks import BY_SCHEME, KINDS, Mode
from ..toml import ConfigError, Problem, Section, Unfit
from .config import Config
from .limits import read_limits
from .target import Target, url_of


def watch_config(
    urls: Sequence[str], *, every: float, timeout: float, mode: Mode, environment: Mapping[str, str]
) -> Config:
    """Check these URLs, beginning at once. Raises ConfigError for all that cannot be used."""
    problems: list[Problem] = []
    targets: dict[str, Target] = {}
    for text in urls:
        try:
            url = url_of(text)
        except Unfit as exc:
            problems.append(Problem(0, str(exc)))
            continue
        kind = BY_SCHEME[url.scheme]
        if str(url) in targets:
            problems.append(Problem(0, f"{url} is given twice"))
        targets[str(url)] = Target(
            name=str(url),
            kind=kind.name,
            check=kind.make(url=url),
            schedule=Every(every),
            timeout=timeout,
            mode=mode,
            start="now",
        )
    if problems:
        raise ConfigError("watch", problems)
    limits, warnings = read_limits(Section({}, (), "", {}), [kind.name for kind in KINDS], environment)
    return Config(targets=tuple(targets.values()), limits=limits, warnings=tuple(warnings))
