"""Read the steps of a [[check]]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from ...text import Url, parse_url
from ...toml import Section, Unfit, boolean, label, seconds, text
from ..contract import Check, Clash, Kind
from ..http import PLACE, HttpCheck, Take, field_name, parse_path, regex
from ..kinds import known_kinds
from .step import Step, StepsCheck

STEPS: Final = "steps"
"""The name of the kind, and of its limit."""

MOST_STEPS: Final = 20
_LONGEST_NAME: Final = 40
_TAKE: Final = 'a table such as { token = { json = "$.token" } }'
_SOURCE: Final = "{ json = PATH }, { header = NAME }, { regex = EXPRESSION }, or header and regex together"


def read_steps(section: Section) -> tuple[Url | None, Kind | None]:
    """Read all steps. Return the first step's URL, and a kind of check that makes them; None for both if problems were
    noted.
    """
    before = len(section.problems)
    if section.has("url"):
        section.take("url", lambda _: None, None)
        section.complain("url: each step has its own", "url")
    tables = section.take(
        "step",
        _tables,
        [],
        "what is asked one after another, in place of `url`. The check is up if all steps are. See [several "
        "steps](agent/checks.md#several-steps)",
    )
    steps: list[Step] = []
    for position, table in enumerate(tables):
        place = Section(table, (*section.path, "step", position), _title(section, table, position), *_shared(section))
        step = _read_step(place, position, steps)
        steps += [] if step is None else [step]
    if len(section.problems) > before:
        return None, None
    check = StepsCheck(tuple(steps))
    kind = Kind(STEPS, {check.url.scheme: check.url.port}, lambda url: check, is_resolved=False)  # noqa: ARG005 - the check has its URLs
    return check.url, kind


def _shared(section: Section) -> tuple[Any, list[Any]]:
    return section.lines, section.problems


def _title(section: Section, table: Mapping[str, Any], position: int) -> str:
    name = table.get("name")
    is_short = isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST_NAME
    return f"{section.name} step '{name}'" if is_short else f"{section.name} step {position + 1}"


def _tables(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        raise Unfit("tables that begin with [[check.step]]", value)
    if len(value) > MOST_STEPS:
        raise Unfit(f"at most {MOST_STEPS} steps, not {len(value)}", value)
    return value


def _read_step(section: Section, position: int, before: list[Step]) -> Step | None:
    problems = len(section.problems)
    url = section.require(
        "url", _url, "`{name}` may stand in path and query. Any kind of check that has addresses may be a step"
    )
    kind = known_kinds().by_scheme.get(str(section.table.get("url")).partition("://")[0].lower())
    name = section.take("name", _name, str(position + 1), "stands in errors and phases. By default the step's number")
    is_always = section.take(
        "always",
        boolean,
        False,  # noqa: FBT003 - the default
        "runs whatever has failed, with 5 s of its own unless `timeout` says otherwise. Such steps stand at the end. "
        "One that needs a text which was never handed on is left out",
    )
    timeout = section.take(
        "timeout",
        seconds,
        None,
        "of this step; by default what is left. The `timeout` of the check is for all steps but those that always run",
    )
    take = section.take(
        "take",
        _taken,
        (),
        'for http: by name `{ json = "$.path" }`, `{ header = "Name" }`, `{ regex = "a(.*)b" }` (its first group), or '
        "header and regex together",
    )
    readers = {} if kind is None else kind.options
    options = {key: section.take(key, reader, None) for key, reader in readers.items() if section.has(key)}
    section.end(also_known=readers)
    if name in {each.name for each in before}:
        section.complain(f"name: there is a step '{name}' before it", "name")
    if before and before[-1].is_always and not is_always:
        section.complain("always: steps that always run stand at the end: this one does not", None)
    if url is None or kind is None or len(section.problems) > problems:
        return None
    check = _made(section, kind, url, options, take)
    if check is None:
        return None
    step = Step(name, check, position, is_always, timeout)
    if len(before) == position:  # else a wrong step before it might hand on the text
        _check_names(section, step, before)
    return step


def _made(section: Section, kind: Kind, url: Url, options: Mapping[str, Any], take: tuple[Take, ...]) -> Check | None:
    try:
        check = kind.make(url=url, **options)
    except Clash as exc:
        section.complain(str(exc), exc.key)
        return None
    if not kind.is_resolved:
        section.complain(f"url: a {kind.name} check cannot be a step", "url")
    if isinstance(check, HttpCheck):
        return evolve(check, take=take)
    if take:
        section.complain("take: is for http:// and https://", "take")
    return check


def _check_names(section: Section, step: Step, before: list[Step]) -> None:
    known = frozenset[str]().union(*(each.hands_on for each in before))
    for name in sorted(step.needs - known):
        there_is = f"there is {', '.join(f'{{{each}}}' for each in sorted(known))}" if known else "nothing is handed on"
        section.complain(f"{{{name}}} is not handed on by a step before it; {there_is}")


def _url(value: Any) -> Url:
    given = text(value)
    authority = given.partition("://")[2].partition("/")[0].partition("?")[0]
    if PLACE.search(authority):
        raise Unfit("a URL in which {name} stands in path or query only", value)
    try:
        return parse_url(given, known_kinds().ports)
    except ValueError as exc:
        raise Unfit(str(exc), value) from None


def _name(value: Any) -> str:
    name = label(value)
    if len(name) > _LONGEST_NAME:
        raise Unfit(f"at most {_LONGEST_NAME} characters", value)
    return name


def _taken(value: Any) -> tuple[Take, ...]:
    if not isinstance(value, dict) or not value:
        raise Unfit(_TAKE, value)
    return tuple(_take(name, source) for name, source in value.items())


def _take(name: str, source: Any) -> Take:
    if not PLACE.fullmatch(f"{{{name}}}"):
        raise Unfit("a name of small letters, digits and _, such as token", name)
    keys = set(source) if isinstance(source, dict) else set()
    if keys not in ({"json"}, {"header"}, {"regex"}, {"header", "regex"}):
        raise Unfit(f"for {name} {_SOURCE}", source)
    try:
        path = parse_path(text(source["json"])) if "json" in keys else None
    except ValueError as exc:
        raise Unfit(str(exc), source["json"]) from None
    return Take(
        name,
        json=path,
        header=field_name(text(source["header"])) if "header" in keys else None,
        regex=regex(source["regex"]) if "regex" in keys else None,
    )
