"""Passwords that rows refer to, in environment variables or files.

Rows also choose who gets a password, so only passwords for that purpose are allowed.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..toml import Unfit, content_of, secret
from .place import TablesPlace

FOLDER: Final = "passwords"
"""Rows may send any file of this folder, next to the configuration."""
MAX_BYTES: Final = 4096
"""Bytes."""
_SECRET: Final = "PASSWORD"  # noqa: S105 - what names of variables have in them


def password_of(variable: Any, file: Any, place: TablesPlace) -> str | None:
    """Read a row's password. Raises Unfit."""
    if variable is not None:
        return _of_variable(variable, place.environment)
    return None if file is None else _of_file(file, place.folder)


def _of_variable(variable: Any, environment: Mapping[str, str]) -> str:
    if not isinstance(variable, str) or _SECRET not in variable.upper():
        raise Unfit(f"a password_env with {_SECRET} in its name", variable)
    return secret(Path(), environment)({"env": variable})


def _of_file(file: Any, folder: Path) -> str:
    name = file.removeprefix(f"{FOLDER}/") if isinstance(file, str) else ""
    if file != f"{FOLDER}/{name}" or not name.isprintable() or name in {"", ".", ".."} or {"/", "\\"} & set(name):
        raise Unfit(f"a password_file in the folder {FOLDER} beside the configuration, as in {FOLDER}/NAME", file)
    try:
        content = content_of(folder / FOLDER / name, MAX_BYTES, follows_links=False)
        lines = content.decode().splitlines()
    except OSError as exc:
        why = "a link is not followed" if exc.errno == errno.ELOOP else (exc.strerror or str(exc)).lower()
        raise Unfit(f"a password_file that can be read ({why})", file) from None
    except UnicodeDecodeError:
        raise Unfit("a password_file of UTF-8", file) from None
    if len(content) > MAX_BYTES:
        raise Unfit(f"a password_file of at most {MAX_BYTES:,} bytes", file)
    if len(lines) != 1 or not lines[0]:
        raise Unfit("a password_file of one line", file)
    return lines[0]
