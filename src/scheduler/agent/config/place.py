"""The place where the agent remembers: in a SQLite file, on a PostgreSQL server, or not beyond its end."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from attrs import frozen

from scheduler import StoreError

from ..text import harmless, masked, secrets_in
from ..toml import VARIABLE, Reader, Unfit, Unset

if TYPE_CHECKING:
    from scheduler import Store
    from scheduler.stores.postgres import PostgresStore
    from scheduler.stores.sqlite import SQLiteStore

MEMORY: Final = "memory"
SQLITE: Final = "sqlite"
POSTGRES: Final = ("postgresql", "postgres")

SCHEMA: Final = "timerqueue_agent"
"""The schema of the tables: the stores of other programs in the same database have theirs."""

_LONGEST_SCHEMA: Final = 63
_SETTING: Final = "schema="
_EXPECTED: Final = '"memory", "sqlite:///FILE" or "postgresql://USER@HOST/DATABASE"'


@frozen(repr=False)
class StorePlace:
    """A place for a store. `file`: a SQLite database. `dsn`: a PostgreSQL server, with the `schema` of the tables.
    Neither: memory, which ends with the process.

    `str` and `repr` show no password.
    """

    file: Path | None = None
    dsn: str | None = None
    schema: str = SCHEMA

    def __str__(self) -> str:
        if self.file is not None:
            return harmless(f"{SQLITE}:///{self.file}")
        if self.dsn is None:
            return MEMORY
        schema = "" if self.schema == SCHEMA else f"{'&' if '?' in self.dsn else '?'}{_SETTING}{self.schema}"
        return harmless(masked(self.dsn) + schema)

    __repr__ = __str__

    @property
    def secrets(self) -> frozenset[str]:
        """Texts that must not be shown."""
        return frozenset() if self.dsn is None else secrets_in(self.dsn)

    def check(self) -> None:
        """Raise StoreError for what a start would refuse, as far as that shows without opening or making anything."""
        store = self._made()
        if store is not None:
            store.preflight()

    def make(self) -> Store | None:
        """Make a store that nobody has opened yet; None: memory.

        Raises StoreError if the driver is not installed, or cannot make sense of the place.
        """
        return self._made()

    def _made(self) -> SQLiteStore | PostgresStore | None:
        # Only the driver that is asked for is imported.
        try:
            if self.file is not None:
                from scheduler.stores.sqlite import SQLiteStore  # noqa: PLC0415

                return SQLiteStore(self.file)
            if self.dsn is not None:
                from scheduler.stores.postgres import PostgresStore  # noqa: PLC0415

                return PostgresStore(self.dsn, schema=self.schema)
        except (ModuleNotFoundError, ValueError) as exc:
            msg = f"{self}: {exc}"
            raise StoreError(msg) from None
        return None


def beside(config: Path) -> StorePlace:
    """The file where an agent remembers that is not told otherwise: that of its configuration, ending in .db."""
    return StorePlace(file=config.with_suffix(".db"))


def store_place(folder: Path, environment: Mapping[str, str]) -> Reader[StorePlace]:
    """Make a reader of places. Files are relative to `folder`. { env = "NAME" } is taken from the environment."""

    def read(value: Any) -> StorePlace:
        match value:
            case {"env": str(variable), **others} if not others:
                if variable not in environment:
                    raise Unset(variable, environment)
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
        return _server(text)
    path = rest.removeprefix("/")
    if scheme != SQLITE or path == rest or not path or path == ":memory:" or set(path) & set("\0?#"):
        raise Unfit(_EXPECTED + _advice(text), text)
    return StorePlace(file=folder / path)


def _server(text: str) -> StorePlace:
    """Read a server, and in `?schema=NAME` the schema, which is ours and not a setting of libpq."""
    address, _, query = text.partition("?")
    settings = [each for each in query.split("&") if each]
    others = [each for each in settings if not each.startswith(_SETTING)]
    dsn = f"{address}?{'&'.join(others)}" if others else address
    found = [unquote(each.removeprefix(_SETTING)) for each in settings if each.startswith(_SETTING)] or [SCHEMA]
    is_name = 0 < len(found[0].encode("utf-8", "replace")) <= _LONGEST_SCHEMA and found[0].isprintable()
    if len(found) > 1 or not is_name or "%" in found[0]:
        raise Unfit(f"one schema of 1 to {_LONGEST_SCHEMA} bytes, as in postgresql://HOST/DATABASE?schema=up", text)
    return StorePlace(dsn=dsn, schema=found[0])


def _advice(text: str) -> str:
    if variable := VARIABLE.fullmatch(text):
        return f' (did you mean {{ env = "{variable[1]}" }}?)'
    scheme, found, rest = text.partition("://")
    path = masked(rest if found else text).strip("/")
    if ":memory:" in text or get_close_matches(text.lower(), [MEMORY], n=1, cutoff=0.75):
        return f' (did you mean "{MEMORY}"?)'
    if found and get_close_matches(scheme.lower(), POSTGRES, n=1, cutoff=0.75):
        return f' (did you mean "postgresql://{masked("//" + rest)[2:]}"?)'
    if path and (not found or get_close_matches(scheme.lower(), [SQLITE], n=1, cutoff=0.75)):
        return f' (did you mean "{SQLITE}:///{path.partition("?")[0]}"?)'
    return ""
