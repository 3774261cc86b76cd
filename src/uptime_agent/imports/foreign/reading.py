"""Files of other monitors: YAML or JSON, with the line of every key.

As in Go, `off`, `010` and `12:30` are text unless a key needs another type. Numbers stay as written.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ...toml import content_of
from .building import DEEPEST, Builder, Items, Mapped, NotImported

LARGEST: Final = 16_000_000
"""Bytes."""

MOST_FILES: Final = 1_000

_TOKEN: Final = re.compile(
    r'[ \t\r\n]*(?:(?P<sign>[\[\]{},:])|(?P<text>"(?:[^"\\]|\\.)*+")|(?P<plain>[^\s\[\]{},:"]++))'
)
_BREAK: Final = re.compile("\n")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_FRACTION: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}")
_OURS: Final[Mapping[str, Any]] = {"": None, "~": None, "null": None, "true": True, "false": False}
_TAGS: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = frozenset(f"{_TAGS}{each}" for each in ("int", "float", "bool", "null", "timestamp"))
_TEXT_TAGS: Final = frozenset({"!", f"{_TAGS}str"})
_OF_COLLECTIONS: Final = frozenset({None, "!", f"{_TAGS}map", f"{_TAGS}seq", f"{_TAGS}set"})


def read_json(file: Path) -> Any:
    """Read JSON. Raises NotImported."""
    text = _content(file)
    try:
        json.loads(text)
        return _json(text)
    except (ValueError, RecursionError) as exc:
        raise NotImported(f"{file}: no JSON that can be read: {exc}") from None
    except NotImported as exc:
        raise NotImported(f"{file}: {exc}") from None


def read_yaml(file: Path) -> Any:
    """Read YAML. Raises NotImported, also without PyYAML."""
    try:
        import yaml  # noqa: PLC0415 - of an extra
    except ImportError:
        raise NotImported('reading YAML takes the extra "import": pip install "timerqueue[import]"') from None
    text = _content(file)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C takes a tenth of the time
    try:
        return _yaml(yaml.parse(text, Loader=loader))
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise NotImported(f"{file}: no YAML that can be read: {' '.join(str(exc).split())}") from None
    except NotImported as exc:
        raise NotImported(f"{file}: {exc}") from None


def _content(file: Path) -> str:
    try:
        found = content_of(file, LARGEST)
        if len(found) > LARGEST:
            raise NotImported(f"{file}: more than {LARGEST // 10**6} MB: that is no configuration")
        return found.decode("utf-8-sig")
    except OSError as exc:
        raise NotImported(f"{file}: cannot read it: {(exc.strerror or str(exc)).lower()}") from None
    except UnicodeDecodeError:
        raise NotImported(f"{file}: not UTF-8") from None
    except ValueError:
        raise NotImported("no file can have that name") from None


def files_like(folder: Path, pattern: str) -> list[Path]:
    """Files in `folder` that match a pattern. `**` matches none."""
    path = Path(pattern)
    base, rest = (Path(path.anchor), path.relative_to(path.anchor)) if path.is_absolute() else (folder, path)
    if "**" in pattern:
        return []
    try:
        return sorted(islice(base.glob(str(rest)), MOST_FILES))
    except (ValueError, OSError, NotImplementedError, IndexError):
        return []


def _json(text: str) -> Any:
    builder = Builder()
    starts = [0, *(found.end() for found in _BREAK.finditer(text))]
    for token in _TOKEN.finditer(text):
        line = bisect_right(starts, token.end() - 1)
        if token["sign"] is None:
            builder.value(json.loads(token["text"] or token["plain"]), line)
        elif token["sign"] in "{[":
            builder.begin(line, is_table=token["sign"] == "{")
        elif token["sign"] in "}]":
            builder.end()
    return builder.root


def _yaml(events: Any) -> Any:
    builder = Builder(merges=True)
    documents = 0
    for event in events:
        line = event.start_mark.line + 1
        match type(event).__name__:
            case "ScalarEvent":
                builder.value(_scalar(event, line), line, event.anchor, is_plain=event.implicit[0])
            case "MappingStartEvent" | "SequenceStartEvent" as name:
                if event.tag not in _OF_COLLECTIONS:
                    raise NotImported(f"line {line}: the tag {event.tag[:100]} says nothing here")
                builder.begin(line, is_table=name.startswith("Mapping"), anchor=event.anchor)
            case "MappingEndEvent" | "SequenceEndEvent":
                builder.end()
            case "AliasEvent":
                builder.alias(event.anchor, line)
            case "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise NotImported(f"line {line}: a second document begins: give each a file of its own")
            case _:
                pass
    return builder.root


def _scalar(event: Any, line: int) -> Any:
    tag, text = event.tag, event.value
    if tag is None:
        return _plain(text) if event.implicit[0] else text
    if tag in _TEXT_TAGS:
        return text
    if tag in _PLAIN_TAGS:
        return _plain(text)
    if tag == f"{_TAGS}binary":
        try:
            return b64decode("".join(text.split()), validate=True)
        except ValueError:
            raise NotImported(f"line {line}: !!binary with what is no base64") from None
    raise NotImported(f"line {line}: the tag {tag[:100]} says nothing here")


def _plain(text: str) -> Any:
    """A number that we would write differently stays text: 010, 1_000, 12:30."""
    if text.lower() in _OURS and (text.islower() or text in {"", "~"}):
        return _OURS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FRACTION.fullmatch(text) and str(float(text)) == text:
        return float(text)
    return text


def undotted(value: Any, depth: int = 0) -> Any:
    """Nest dotted keys: `check.request: ...` becomes `check: {request: ...}`.

    Raises NotImported if both set one key, or are too deep.
    """
    if depth > DEEPEST:
        raise NotImported(f"line {value.line}: more than {DEEPEST} tables inside each other")
    if isinstance(value, Items):
        found = [undotted(each, depth + 1) if isinstance(each, (Items, Mapped)) else each for each in value.values]
        return Items(found, value.lines, value.line, value.size)
    if not isinstance(value, Mapped):
        return value
    whole = Mapped({}, {}, value.line, value.size)
    for key, each in value.values.items():
        line = value.lines[key]
        first, _, rest = key.partition(".")
        if first and rest:
            each = Mapped({rest: each}, {rest: line}, line, value.size)  # noqa: PLW2901 - as it is meant
            key = first  # noqa: PLW2901
        below = undotted(each, depth + 1) if isinstance(each, (Items, Mapped)) else each
        whole = _joined(whole, Mapped({key: below}, {key: line}, line), depth)
    return whole


def _joined(first: Mapped, second: Mapped, depth: int) -> Mapped:
    values, lines = dict(first.values), {**second.lines, **first.lines}
    for key, each in second.values.items():
        before = values.get(key)
        if key not in values:
            values[key] = each
        elif isinstance(before, Mapped) and isinstance(each, Mapped):
            values[key] = _joined(before, each, depth + 1)
        else:
            raise NotImported(f"line {second.lines[key]}: '{key[:100]}' stands there twice, first on line {lines[key]}")
    return Mapped(values, lines, first.line, first.size)
