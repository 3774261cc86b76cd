"""Where history and metrics are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from attrs import asdict, evolve, field, frozen

from scheduler import StoreError, why_from

from ..quorum import FleetPlan
from ..text import harmless, masked, secrets_in
from ..toml import VARIABLE, Reader, Section, Unfit, Unset, megabytes, seconds, secret

if TYPE_CHECKING:
    from datetime import datetime

    from scheduler import Store, Why
    from scheduler.stores import FleetView, StoredJob, StoredState
    from scheduler.stores.postgres import PostgresStore
    from scheduler.stores.sqlite import SQLiteStore

    from ..postgres import PostgresTarget, ReadableStore, Retention, Spool

MEMORY: Final = "memory"
SQLITE: Final = "sqlite"
POSTGRES: Final = ("postgresql", "postgres")

SCHEMA: Final = "timerqueue_agent"
"""Other programs' stores in the database have their own."""

OF_PROGRAMS: Final = "timerqueue"

METRICS_SCHEMA: Final = "timerqueue_metrics"

DAY: Final = 86_400.0
MEMORY_KEEPS: Final = 3_600.0
"""Seconds for samples without a store."""

_LONGEST_SCHEMA: Final = 63
_SETTING: Final = "schema="
_EXPECTED: Final = '"memory", "sqlite:///FILE" or "postgresql://USER@HOST/DATABASE"'


@frozen(repr=False)
class StorePlace:
    """A SQLite `file`, or a PostgreSQL `dsn` with a `schema`, or neither: memory.

    `fleet`: our part in a fleet. `str` and `repr` show no password.
    """

    file: Path | None = None
    dsn: str | None = None
    schema: str = SCHEMA
    fleet: FleetPlan | None = None

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
        """Texts never to show."""
        return frozenset() if self.dsn is None else secrets_in(self.dsn)

    def check(self) -> None:
        """Raise StoreError for what a start would refuse. Opens and makes nothing."""
        store = self._made()
        if store is not None:
            store.preflight()

    def check_free(self) -> None:
        """Raise StoreError if another agent has the file. A server can be taken over."""
        if self.file is None or not self.file.exists():
            return
        store = self._made()
        assert store is not None
        try:
            store.open(0, lambda: None)
        finally:
            store.close()

    def make(self) -> Store | None:
        """Make an unopened store; None: memory. Raises StoreError if the driver is missing or refuses."""
        return self._made()

    def of_programs(self) -> StorePlace:
        """Use programs' schema by default."""
        return evolve(self, schema=OF_PROGRAMS) if self.schema == SCHEMA else self

    def stored_jobs(self) -> list[tuple[StoredJob, StoredState | None]]:
        """Read the jobs of a store that another process may have open. Raises StoreError."""
        store = self._made()
        assert store is not None
        try:
            return store.read_jobs()
        finally:
            store.close()

    def why(self, id: str, at: datetime | None) -> Why:
        """Say why a job did or did not run, from a store that another process may have open. Raises StoreError."""
        store = self._made()
        assert store is not None
        try:
            return why_from(store, id, at)
        finally:
            store.close()

    def fleet_view(self) -> FleetView:
        """Read a server's nodes. Raises StoreError."""
        with self.visited() as store:
            return store.fleet()

    @contextmanager
    def visited(self) -> Iterator[PostgresStore]:
        """Lend a server's unopened store. Raises StoreError."""
        from scheduler.stores.postgres import PostgresStore  # noqa: PLC0415

        store = self._made()
        assert isinstance(store, PostgresStore)
        try:
            yield store
        finally:
            store.close()

    def _made(self) -> SQLiteStore | PostgresStore | None:
        # Only the driver that is asked for is imported.
        try:
            if self.file is not None:
                from scheduler.stores.sqlite import SQLiteStore  # noqa: PLC0415

                return SQLiteStore(self.file)
            if self.dsn is not None:
                from scheduler.stores.postgres import PostgresStore  # noqa: PLC0415

                fleet = self.fleet
                if fleet is None:
                    return PostgresStore(self.dsn, schema=self.schema)
                return PostgresStore(self.dsn, schema=self.schema, shared=True, **asdict(fleet, recurse=False))
        except (ModuleNotFoundError, ValueError) as exc:
            msg = f"{self}: {exc}"
            raise StoreError(msg) from None
        return None


@frozen(kw_only=True)
class MetricsPlace:
    """Where metrics are kept: in `store`, or next to the history, in files named after `base`.

    Seconds: `age`; `ages` by probe. `most_bytes`: of a SQLite file. `spool_bytes`: on disk while the store is away.
    """

    store: StorePlace | None = None
    password: str | None = field(default=None, repr=False)
    base: Path | None = None
    age: float = 28 * DAY
    ages: Mapping[str, float] = field(factory=dict)
    most_bytes: int = 1024**3
    spool_bytes: int = 256 * 1024**2

    @property
    def kept(self) -> tuple[float, Mapping[str, float]]:
        """`age` and `ages`, which a running agent follows."""
        return self.age, self.ages

    def keeping(self, other: MetricsPlace) -> MetricsPlace:
        """This place with another's ages."""
        return evolve(self, age=other.age, ages=other.ages)

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        own = frozenset() if self.password is None else frozenset([self.password])
        return own if self.store is None else own | self.store.secrets

    def beside(self, history: StorePlace) -> StorePlace:
        """The place, given the history's."""
        if self.store is not None:
            return self.store
        base = self._base(history)
        if base is None or (history.file is None and history.dsn is None):
            return StorePlace()
        return StorePlace(file=base.with_suffix(".metrics.db"))

    def files(self, history: StorePlace) -> list[Path]:
        """Its paths on this machine."""
        place, spool = self.beside(history), self._spool(history)
        return [each for each in (place.file, spool) if each is not None]

    def make(self, history: StorePlace, servers: Iterable[PostgresTarget] = ()) -> tuple[ReadableStore, Spool | None]:
        """Make an unopened store, and its spool.

        Raises ValueError or ModuleNotFoundError if the driver cannot use it.
        """
        from ..postgres import MemoryMetrics, Spool, SqliteMetrics, postgres_metrics  # noqa: PLC0415

        place, folder, kept = self.beside(history), self._spool(history), self.retention(history, servers)
        spool = None if folder is None else Spool(folder, most_bytes=self.spool_bytes)
        if place.dsn is not None:
            return postgres_metrics(place.dsn, kept, schema=place.schema, password=self.password), spool
        if place.file is not None:
            return SqliteMetrics(place.file, kept, most_bytes=self.most_bytes), spool
        return MemoryMetrics(kept), None

    def retention(self, history: StorePlace, servers: Iterable[PostgresTarget] = ()) -> Retention:
        """How long metrics are kept. A server's own setting comes first."""
        from ..postgres import Retention  # noqa: PLC0415

        is_memory = self.beside(history) == StorePlace()
        return Retention(
            default=min(self.age, MEMORY_KEEPS) if is_memory else self.age,
            probes=self.ages,
            targets={(each.name, probe): kept for each in servers for probe, kept in each.retention.items()},
        )

    def _spool(self, history: StorePlace) -> Path | None:
        base = self._base(history)
        return None if base is None else base.with_suffix(".metrics.spool")

    def _base(self, history: StorePlace) -> Path | None:
        return self.base if history.file is None else history.file


def read_metrics(
    top: Section, meaning: str, history: StorePlace, file: Path, environment: Mapping[str, str], *, is_used: bool
) -> MetricsPlace:
    """Read [metrics], or metrics = "PLACE". `is_used`: some server is probed."""
    place = store_place(file.parent, environment, METRICS_SCHEMA)
    said = top.table.get("metrics")
    if isinstance(said, str) or (isinstance(said, dict) and said.keys() == {"env"}):
        section, key = top, "metrics"
        found = MetricsPlace(base=file, store=top.take(key, place, None, meaning))
    else:
        section, key = top.section("metrics", meaning), "store"
        found = _metrics(section, place, file, environment)
    for wrong in _troubles(found, history, is_used=is_used):
        section.complain(f"{key}: {wrong}", key)
    return found


def _metrics(section: Section, place: Reader[StorePlace], file: Path, environment: Mapping[str, str]) -> MetricsPlace:
    default = MetricsPlace()
    found = MetricsPlace(
        base=file,
        store=section.take(
            "store",
            place,
            default.store,
            "where they are kept. By default in a SQLite file named after that of the history and ending in "
            "`.metrics.db`; in memory, for an hour, if the history is there. A server gets them by COPY into a schema, "
            '`timerqueue_metrics` unless the URL ends in `?schema=NAME`. `metrics = "..."` is short for it',
        ),
        password=section.take(
            "password", secret(file.parent, environment), default.password, "for the server, beside its URL"
        ),
        age=section.take("age", seconds, default.age, "for how long they are kept"),
        ages=_ages(section.section("probes", 'for how long those of a probe are kept, by its name: `wal = "7d"`')),
        most_bytes=section.take(
            "size", megabytes, default.most_bytes, "of a SQLite file: beyond that the oldest samples go"
        ),
        spool_bytes=section.take(
            "spool",
            megabytes,
            default.spool_bytes,
            "of what waits on disk while the store is away, in a folder named after the file and ending in "
            "`.metrics.spool`: beyond that the oldest goes",
        ),
    )
    section.end()
    return found


def _troubles(found: MetricsPlace, history: StorePlace, *, is_used: bool) -> Iterator[str]:
    store = found.store
    if store is not None and store.file is not None and store.file == history.file:
        yield "this is the file of the history: give the metrics one of their own"
    if found.password is not None and (store is None or store.dsn is None):
        yield 'there is a password, but no server that would want it: store = "postgresql://USER@HOST/DATABASE"'
    if is_used and store is not None and store.dsn is not None:
        try:
            found.make(history)
        except (ModuleNotFoundError, ValueError) as exc:
            yield str(exc)


def _ages(section: Section) -> dict[str, float]:
    if not section.table:
        return {}
    from ..postgres import CATALOGUE  # noqa: PLC0415 - the probes take as long to import as all checks

    found = {name: section.take(name, seconds, 1.0) for name in CATALOGUE if name in section.table}
    section.end(CATALOGUE)
    return found


def shared(top: Section, store: StorePlace, fleet: FleetPlan) -> StorePlace:
    """The store for nodes. Notes a problem if it is for one process."""
    if store.dsn is None and not top.is_misfit("store"):
        top.complain(
            f"[fleet]: agents share a store in PostgreSQL, and {store} is for one process: "
            'store = "postgresql://USER@HOST/DATABASE"',
            "fleet",
        )
    return evolve(store, fleet=fleet)


def beside(config: Path) -> StorePlace:
    """The default: the configuration's name, ending in .db."""
    return StorePlace(file=config.with_suffix(".db"))


def store_place(folder: Path, environment: Mapping[str, str], schema: str = SCHEMA) -> Reader[StorePlace]:
    """Make a reader of places. Files are relative to `folder`."""

    def read(value: Any) -> StorePlace:
        match value:
            case {"env": str(variable), **others} if not others:
                if variable not in environment:
                    raise Unset(variable, environment)
                return _place(environment[variable], folder, schema)
            case str():
                return _place(value, folder, schema)
            case _:
                raise Unfit(_EXPECTED, value)

    return read


def _place(text: str, folder: Path, schema: str) -> StorePlace:
    scheme, _, rest = text.partition("://")
    if text == MEMORY:
        return StorePlace()
    if scheme in POSTGRES and rest:
        return _server(text, schema)
    path = rest.removeprefix("/")
    if scheme != SQLITE or path == rest or not path or path == ":memory:" or set(path) & set("\0?#"):
        raise Unfit(_EXPECTED + _advice(text), text)
    return StorePlace(file=folder / path)


def _server(text: str, schema: str) -> StorePlace:
    """`?schema=NAME` is our own setting, not libpq's."""
    address, _, query = text.partition("?")
    settings = [each for each in query.split("&") if each]
    others = [each for each in settings if not each.startswith(_SETTING)]
    dsn = f"{address}?{'&'.join(others)}" if others else address
    found = [unquote(each.removeprefix(_SETTING)) for each in settings if each.startswith(_SETTING)] or [schema]
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
