"""Status codes for conditions on [STATUS]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import groupby
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

CODES: Final = range(100, 600)
_SIGNS: Final[Mapping[str, Callable[[int, int], bool]]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_CALL: Final = re.compile(r"(any|pat)\((.*)\)", re.DOTALL)


@lru_cache(maxsize=1_000)
def fitting(sign: str, value: str) -> frozenset[int] | None:
    """Codes that fit; None: unreadable."""
    call = _CALL.fullmatch(value)
    if call is not None:
        if sign not in {"==", "!="}:
            return None
        found = _of_call(call[1], call[2])
        return found if found is None or sign == "==" else frozenset(CODES) - found
    if not (value.isascii() and value.isdigit()):
        return None
    return frozenset(code for code in CODES if _SIGNS[sign](code, int(value[:10])))


def _of_call(name: str, inner: str) -> frozenset[int] | None:
    if name == "pat":
        return None if set(inner) & set("[]\\") else frozenset(each for each in CODES if fnmatchcase(str(each), inner))
    codes = [each.strip() for each in inner.split(",")]
    return (
        frozenset(int(each[:10]) for each in codes)
        if all(each.isdigit() and each.isascii() for each in codes)
        else None
    )


def as_option(codes: frozenset[int]) -> Any:
    """Codes as `expect_status`."""
    found = _runs(codes)
    return found[0] if len(found) == 1 else list(found)


@lru_cache(maxsize=1_000)
def _runs(codes: frozenset[int]) -> tuple[int | str, ...]:
    runs = [[code for _, code in run] for _, run in groupby(enumerate(sorted(codes)), lambda pair: pair[1] - pair[0])]
    return tuple(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
