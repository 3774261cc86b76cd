"""Files of other monitors as plain values: YAML or JSON, of a size that makes sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from .draft import NotImported

LARGEST: Final = 16_000_000
"""Bytes of a file."""


def read_json(file: Path) -> Any:
    """Read a file of JSON. Raises NotImported."""
    try:
        return json.loads(_content(file))
    except (ValueError, RecursionError) as exc:
        raise NotImported(f"{file}: no JSON that can be read: {exc}") from None


def read_yaml(file: Path) -> Any:
    """Read a file of YAML. Raises NotImported, also where nothing can read YAML."""
    try:
        import yaml  # noqa: PLC0415 - of an extra
    except ImportError:
        raise NotImported('reading YAML takes the extra "import": pip install "timerqueue[import]"') from None
    try:
        return yaml.safe_load(_content(file))
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise NotImported(f"{file}: no YAML that can be read: {' '.join(str(exc).split())}") from None


def _content(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            found = opened.read(LARGEST + 1)
        if len(found) > LARGEST:
            raise NotImported(f"{file}: more than {LARGEST // 10**6} MB: that is no configuration")
        return found.decode("utf-8-sig")
    except OSError as exc:
        raise NotImported(f"{file}: cannot read it: {(exc.strerror or str(exc)).lower()}") from None
    except UnicodeDecodeError:
        raise NotImported(f"{file}: not UTF-8") from None
