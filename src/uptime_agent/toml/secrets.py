"""Secrets in the configuration, an environment variable, or a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .content import content_of
from .readers import VARIABLE, Reader, Unfit, Unset

LARGEST: Final = 64 * 1024
"""Bytes."""


class Secret(str):
    """A text from a reference, never shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def secret(folder: Path, environment: Mapping[str, str]) -> Reader[str]:
    """Make a reader of texts, and of references, which become a `Secret`.

    References: { env = "NAME" }, { file = "PATH" } relative to `folder`. A final line break does not count.
    """

    def read(value: Any) -> str:
        match value:
            case {"env": str(variable), **others} if not others:
                if variable not in environment:
                    raise Unset(variable, environment)
                return Secret(_some(environment[variable], f"the environment variable {variable}"))
            case {"file": str(path), **others} if not others:
                return Secret(text_of_file(folder / path))
            case str() if written := VARIABLE.search(value):
                if "${" in value or written[0] == value:
                    raise Unfit(
                        f'{{ env = "{written[1]}" }}: no variable is replaced within a text', value, is_secret=True
                    )
                return value
            case str() if value:
                return value
            case _:
                raise Unfit('text, { env = "NAME" } or { file = "PATH" }', value, is_secret=True)

    return read


def leaving_out_unset(value: Any, environment: Mapping[str, str]) -> Any:
    """Drop unset references. `over` has bounded the depth."""
    match value:
        case dict():
            kept = {name: each for name, each in value.items() if not is_unset(each, environment)}
            return {name: leaving_out_unset(each, environment) for name, each in kept.items()}
        case list():
            return [leaving_out_unset(each, environment) for each in value]
        case _:
            return value


def is_unset(value: Any, environment: Mapping[str, str]) -> bool:
    """Whether a value refers to an unset variable."""
    match value:
        case {"env": str(variable), **others} if not others:
            return variable not in environment
        case _:
            return False


def text_of_file(path: Path) -> str:
    """Read a secret from a file, without a final line break. Raises Unfit."""
    return _some(_content(path), f"the file {path.name}")


def _content(path: Path) -> str:
    try:
        found = content_of(path, LARGEST)
        if len(found) > LARGEST:
            raise Unfit(f"a file of at most {LARGEST // 1024} KiB", str(path))
        return found.decode().removesuffix("\n").removesuffix("\r")
    except OSError as exc:
        raise Unfit(f"a file that can be read ({(exc.strerror or str(exc)).lower()})", str(path)) from None
    except UnicodeDecodeError:
        raise Unfit("a file of UTF-8", str(path)) from None
    except ValueError:
        raise Unfit("a file (no name of a file holds NUL)", str(path)) from None


def _some(found: str, where: str) -> str:
    if not found:
        raise Unfit(f"text in {where}", "", is_secret=True)
    return found
