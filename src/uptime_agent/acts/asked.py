"""Checks of what people ask for: names, reasons and ends. Pure."""

from __future__ import annotations

from datetime import datetime

from ..text import wording
from ..toml import suggestion
from .act import LARGEST, LONGEST_ACTOR, LONGEST_REASON, Scope, ScopeKind
from .book import Known


class ActRefused(Exception):
    """An act makes no sense. The text says why, and what to do instead."""


class NoSuchName(ActRefused):
    """No target, group or tag has the name."""


class ActUnfit(ActRefused):
    """A reason, an actor or an end is none. The text begins with its name."""


def scope_of(known: Known, target: str | None, group: str | None = None, tag: str | None = None) -> Scope:
    """The scope that was named. Raises ActRefused unless it is exactly one, and NoSuchName."""
    scope = named(target, group, tag)
    kind, name = scope.kind, scope.name
    names = {ScopeKind.TARGET: known.tags, ScopeKind.GROUP: known.groups, ScopeKind.TAG: known.all_tags}[kind]
    if name not in names:
        raise NoSuchName(f"there is no {kind.value} {wording.printable(name)!r}{_instead(known, kind, name)}")
    return scope


def named(target: str | None, group: str | None = None, tag: str | None = None) -> Scope:
    """The scope that was named, whether it is known or not. Raises ActRefused unless it is exactly one."""
    given = {ScopeKind.TARGET: target, ScopeKind.GROUP: group, ScopeKind.TAG: tag}
    scopes = [Scope(kind, name) for kind, name in given.items() if name is not None]
    if len(scopes) != 1:
        msg = f"name one target, one group or one tag, not {len(scopes)}"
        raise ActRefused(msg)
    return scopes[0]


def target_or_group(known: Known, name: str) -> Scope:
    """The scope of a target or else a group of that name. Raises NoSuchName."""
    is_group = name not in known.tags and name in known.groups
    return Scope(ScopeKind.GROUP, name) if is_group else scope_of(known, name)


def reason_of(reason: str) -> str:
    """Raises ActUnfit without a reason: the next person wants to know."""
    return _said(reason, "reason", LONGEST_REASON, 'say why, such as "disk ordered"')


def actor_of(actor: str) -> str:
    """Raises ActUnfit for a nameless person."""
    return _said(actor, "actor", LONGEST_ACTOR, "say who acts")


def until_of(until: datetime | None, now: float) -> float | None:
    """UTC seconds of an end. Raises ActUnfit for a naive or past one."""
    if until is None:
        return None
    if until.tzinfo is None:
        msg = f"until: {until} has no time zone: add one, such as {until.isoformat()}+00:00"
        raise ActUnfit(msg)
    found = until.timestamp()
    if not now < found <= LARGEST:
        msg = f"until: {wording.stamp(found)} is not after now, {wording.stamp(now)}: give a later end"
        raise ActUnfit(msg)
    return found


def _said(text: str, what: str, most: int, advice: str) -> str:
    if not isinstance(text, str) or not text.strip():
        msg = f"{what}: {text!r} says nothing: {advice}"
        raise ActUnfit(msg)
    if len(text) > most:
        msg = f"{what}: {len(text):,} characters: at most {most}"
        raise ActUnfit(msg)
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        msg = f"{what}: {text!r:.100} has letters that no store takes: leave them out"
        raise ActUnfit(msg)
    return text.strip()


def _instead(known: Known, kind: ScopeKind, name: str) -> str:
    match kind:
        case ScopeKind.TARGET if name in known.groups:
            return ": that is a group"
        case ScopeKind.GROUP if name in known.tags:
            return ": that is a target"
        case ScopeKind.TARGET:
            return suggestion(name, known.tags)
        case ScopeKind.GROUP:
            return suggestion(name, known.groups)
        case ScopeKind.TAG:
            return suggestion(name, known.all_tags)
