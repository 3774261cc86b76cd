"""Where the agent remembers: in a SQLite file, on a PostgreSQL server, or not beyond its end."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from scheduler import StoreError

from .readers import Reader, Unfit
from .url import masked, secrets_in
from .wording import harmless

if TYPE_CHECKING:
    from scheduler import Store

MEMORY: Final = "memory"
SQLITE: Final = "sqlite"
POSTGRES: Final = ("postgresql", "postgres")

_EXPECTED: Final = '"memory", "sqlite:///FILE" or "postgresql://USER@HOST/DATABASE"'


@frozen(repr=False)
class StorePlace:
    """`file`: a SQLite database. `dsn`: a PostgreSQL server. Neither: memory, which ends with the process.

    `str` and `repr` show no password.
    """

    file: Path | None = None
    dsn: str | None = None

    def __str__(self) -> str:
        if self.file is not None:
            return harmless(f"{SQLITE}:///{self.file}")
        return MEMORY if self.dsn is None else harmless(masked(self.dsn))

    __repr__ = __str__

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be shown."""
        return frozenset() if self.dsn is None else secrets_in(self.dsn)

    def make(self) -> Store | None:
        """A store that nobody has opened yet; None: memory.

        Raises StoreError if the driver is not installed, or cannot make sense of the place.
        """
        # Only the driver that is asked for is imported.
        try:
            if self.file is not None:
                from scheduler.stores.sqlite import SQLiteStore  # noqa: PLC0415

                return SQLiteStore(self.file)
            if self.dsn is not None:
                from scheduler.stores.postgres import PostgresStore  # noqa: PLC0415

                return PostgresStore(self.dsn)
        except (ModuleNotFoundError, ValueError) as exc:
            msg = f"{self}: {exc}"
            raise StoreError(msg) from None
        return None


def beside(config: Path) -> StorePlace:
    """The file where an agent remembers that is not told otherwise: that of its configuration, ending in .db."""
    return StorePlace(file=config.with_suffix(".db"))


def store_place(folder: Path, environment: Mapping[str, str]) -> Reader[StorePlace]:
    """A reader of places. Files are relative to `folder`. { env = "NAME" } is taken from the environment."""

    def read(value: Any) -> StorePlace:
        match value:
            case {"env": str(variable), **others} if not others:
                if variable not in environment:
                    raise Unfit(f"the environment variable {variable}", "none of that name")
                return _place(environment[variable], folder)
            case str():
                return _place(value, folder)
            case _:
                raise Unfit(_EXPECTED, value)

    return read


def _place(text: str, folder: Path) -> StorePlace:
    scheme, _, rest = text.partition("://")
    if text == MEMORY:
        return StorePlace()
    if scheme in POSTGRES and rest:
        return StorePlace(dsn=text)
    path = rest.removeprefix("/")
    if scheme != SQLITE or path == rest or not path or path == ":memory:" or set(path) & set("\0?#"):
        raise Unfit(_EXPECTED + _advice(text), text)
    return StorePlace(file=folder / path)


def _advice(text: str) -> str:
    scheme, found, rest = text.partition("://")
    path = masked(rest if found else text).strip("/")
    if ":memory:" in text or get_close_matches(text.lower(), [MEMORY], n=1, cutoff=0.75):
        return f' (did you mean "{MEMORY}"?)'
    if found and get_close_matches(scheme.lower(), POSTGRES, n=1, cutoff=0.75):
        return f' (did you mean "postgresql://{masked("//" + rest)[2:]}"?)'
    if path and (not found or get_close_matches(scheme.lower(), [SQLITE], n=1, cutoff=0.75)):
        return f' (did you mean "{SQLITE}:///{path.partition("?")[0]}"?)'
    return ""
