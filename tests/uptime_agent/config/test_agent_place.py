"""Where the agent remembers, and how much: what may be said about it, and what is told of mistakes."""

from pathlib import Path

import pytest

from scheduler import Retention, StoreError
from uptime_agent.config.config import parse_config, read_config
from uptime_agent.config.place import StorePlace
from uptime_agent.text.redact import Redactor
from uptime_agent.toml.sections import ConfigError

CHECK = '\n[[check]]\nurl = "http://h"\n'
SECRET = "postgresql://me:hunter%2022@db.example:5433/up?sslpassword=hunter33"


def read(text, file="/etc/agent/uptime.toml", environment=None):
    """Read a configuration of that text."""
    return parse_config(text + CHECK, file, environment or {})


@pytest.mark.parametrize(
    ("text", "file", "place"),
    [
        ("", "/etc/agent/uptime.toml", StorePlace(file=Path("/etc/agent/uptime.db"))),
        ("", "uptime.toml", StorePlace(file=Path("uptime.db"))),
        ("", "shop.prod.toml", StorePlace(file=Path("shop.prod.db"))),
        ('store = "memory"', "a/u.toml", StorePlace()),
        ('store = "sqlite:///x.db"', "a/u.toml", StorePlace(file=Path("a/x.db"))),
        ('store = "sqlite:///../x.db"', "a/u.toml", StorePlace(file=Path("a/../x.db"))),
        ('store = "sqlite:////var/lib/x.db"', "a/u.toml", StorePlace(file=Path("/var/lib/x.db"))),
        ('store = "postgresql://h/d"', "a/u.toml", StorePlace(dsn="postgresql://h/d")),
        ('store = "postgres:///d"', "a/u.toml", StorePlace(dsn="postgres:///d")),
        ('store = "postgres:///d?schema=up"', "a/u.toml", StorePlace(dsn="postgres:///d", schema="up")),
        ('store = "postgres:///d?a=1&schema=u%20p"', "u.toml", StorePlace(dsn="postgres:///d?a=1", schema="u p")),
        ('store = { env = "PLACE" }', "a/u.toml", StorePlace(dsn="postgresql://x/y")),
    ],
)
def test_a_place_is_beside_the_configuration_unless_it_says_otherwise(text, file, place):
    """A file is relative to the folder of the configuration."""
    assert read(text, file, {"PLACE": "postgresql://x/y"}).store == place


MISTAKES = [
    (
        "store = 5",
        'uptime.toml:1: store: expected "memory", "sqlite:///FILE" or "postgresql://USER@HOST/DATABASE", found',
    ),
    ('# first\nstore = "sqlite://x.db"', 'uptime.toml:2: store: expected "memory"'),
    ('store = "sqlite://x.db"', '(did you mean "sqlite:///x.db"?), found "sqlite://x.db"'),
    ('store = "sqllite:///x.db"', '(did you mean "sqlite:///x.db"?)'),
    ('store = "x.db"', '(did you mean "sqlite:///x.db"?)'),
    ('store = "Memory"', '(did you mean "memory"?)'),
    ('store = "sqlite:///:memory:"', '(did you mean "memory"?)'),
    ('store = "sqlite:///"', 'store: expected "memory"'),
    ('store = "sqlite:///x.db?mode=ro"', '(did you mean "sqlite:///x.db"?)'),
    ('store = "postgre://h/d"', '(did you mean "postgresql://h/d"?)'),
    ('store = "mysql://h/d"', 'found "mysql://h/d"'),
    ('store = "postgresql://"', 'found "postgresql://"'),
    (
        'store = "postgresql:///d?schema="',
        "store: expected one schema of 1 to 63 bytes, as in postgresql://HOST/DATABASE",
    ),
    ('store = "postgresql:///d?schema=a&schema=b"', "store: expected one schema of 1 to 63 bytes"),
    ('store = "postgresql:///d?schema=a%00"', "store: expected one schema of 1 to 63 bytes"),
    ('store = { env = "NOTHING" }', "expected the environment variable NOTHING, found"),
    ('store = { env = "NOTHING" }', "none of that name: set it for the agent, as in NOTHING=... timerqueue"),
    ('store = "$PLACE"', '(did you mean { env = "PLACE" }?), found "$PLACE"'),
    ('store = "${PLACE}"', '(did you mean { env = "PLACE" }?)'),
    ('stor = "memory"', "uptime.toml:1: unknown key 'stor', did you mean 'store'?"),
    ("[history]\nper_jobs = 5", "uptime.toml:2: unknown key 'per_jobs' in [history], did you mean 'per_job'?"),
    (
        "[history]\nper_job = 0",
        "uptime.toml:2: [history]: per_job: expected a whole number from 1 to 1,000,000, or inf",
    ),
    (
        "[history]\nage = 5\nsize = 5",
        'uptime.toml:3: [history]: size: expected a size such as "64 MiB" or "1 GiB", or inf',
    ),
    ('[history]\nsize = "0 MiB"', 'expected a size such as "64 MiB" or "1 GiB", or inf for no bound, found "0 MiB"'),
    ('[history]\nage = "old"', "[history]: age: expected a duration such as"),
    ("history = 5", "uptime.toml:1: history: expected a table [history], found the number 5"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[message[-50:] for _, message in MISTAKES])
def test_a_mistake_about_memory_is_told_with_its_line(text, message):
    """File, line, key, what was expected, and what was probably meant."""
    with pytest.raises(ConfigError) as caught:
        read(text, "uptime.toml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "retention"),
    [
        ("", Retention()),
        ('[history]\nper_job = 9\nage = "7d"\nsize = "64 MiB"', Retention(per_job=9, age=604800.0, total_bytes=2**26)),
        ("[history]\nper_job = inf\nage = inf\nsize = inf", Retention(per_job=None, age=None, total_bytes=None)),
        ('[history]\nsize = "2GB"', Retention(total_bytes=2 * 10**9)),
    ],
)
def test_how_much_history_is_kept(text, retention):
    """Each bound for itself, and inf for none."""
    assert read(text).retention == retention


@pytest.mark.parametrize("key", ["store = '{}'", "store = 'x{}'", "store = {{ env = 'A', other = '{}' }}"])
def test_a_password_is_not_shown(key):
    """Neither where it is right nor where it is wrong."""
    try:
        shown = f"{read(key.format(SECRET)).store!r}{read(key.format(SECRET)).store}"
    except ConfigError as exc:
        shown = str(exc)
    assert "hunter" not in shown


def test_a_password_is_masked_in_whatever_a_driver_says():
    """In each of its spellings."""
    place = StorePlace(dsn=SECRET)
    text = f"cannot reach {SECRET}: password 'hunter 22' or hunter33 is wrong"
    assert "hunter" not in Redactor(place.secrets).clean(text)
    assert str(place) == "postgresql://***@db.example:5433/up?sslpassword=***"


def test_a_place_that_makes_no_sense_to_its_driver_is_told():
    """Before anything is connected to, and without the password."""
    with pytest.raises(StoreError) as caught:
        StorePlace(dsn="postgresql://me:hunter22@h/d?no_such_option=1").make()
    assert "hunter22" not in str(caught.value)
    assert str(caught.value).startswith("postgresql://***@h/d")


def test_memory_is_no_store():
    """What would end with the process need not be written down."""
    assert StorePlace().make() is None


def test_a_file_is_read_with_its_own_folder(tmp_path):
    """Whatever the working directory is."""
    file = tmp_path / "uptime.toml"
    file.write_text('store = "sqlite:///data.db"' + CHECK)
    assert read_config(file, {}).store == StorePlace(file=tmp_path / "data.db")


SERVER = '\n[[postgres]]\nhost = "db.example"\n'
HERE = "postgresql://m@h/metrics"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", StorePlace(file=Path("a/u.metrics.db"))),
        ('store = "memory"', StorePlace()),
        ('store = "sqlite:///x.db"', StorePlace(file=Path("a/x.metrics.db"))),
        ('store = "postgresql://h/d"', StorePlace(file=Path("a/u.metrics.db"))),
        (f'metrics = "{HERE}"', StorePlace(dsn=HERE, schema="timerqueue_metrics")),
        ('metrics = { env = "PLACE" }', StorePlace(dsn="postgresql://x/y", schema="timerqueue_metrics")),
        ('[metrics]\nstore = { env = "PLACE" }', StorePlace(dsn="postgresql://x/y", schema="timerqueue_metrics")),
        (f'[metrics]\nstore = "{HERE}?schema=up"', StorePlace(dsn=HERE, schema="up")),
        ('[metrics]\nstore = "sqlite:///m.db"\nsize = "2 GiB"', StorePlace(file=Path("a/m.db"))),
        ('store = "memory"\n[metrics]\nstore = "sqlite:///m.db"', StorePlace(file=Path("a/m.db"))),
        ('metrics = "memory"', StorePlace()),
    ],
)
def test_metrics_have_a_place_of_their_own(text, place):
    """Beside the history unless something else is said, and in its memory if it has no more than that."""
    config = read(text, "a/u.toml", {"PLACE": "postgresql://x/y"})
    assert config.metrics.beside(config.store) == place


@pytest.mark.parametrize("file", ['{ file = "word" }', '{ env = "WORD" }', '"hunter2"'])
def test_the_password_of_a_metrics_server_may_stand_elsewhere(tmp_path, file):
    """And is a secret wherever it stands."""
    (tmp_path / "word").write_text("hunter2\n")
    text = f'[metrics]\nstore = "{HERE}"\npassword = {file}\n{SERVER}'
    config = parse_config(text, str(tmp_path / "u.toml"), {"WORD": "hunter2"})
    assert (config.metrics.password, "hunter2" in config.secrets) == ("hunter2", True)
    assert "hunter2" not in repr(config.metrics)
    store, spool = config.metrics.make(config.store, config.postgres)
    assert "hunter2" not in repr(store)
    assert spool.folder == tmp_path / "u.metrics.spool"


def test_each_server_may_keep_each_probe_for_a_time_of_its_own():
    """The most exact word counts: server and probe, probe, all."""
    config = read(
        f"""
        [metrics]
        age = "14d"
        probes = {{ wal = "2d", activity = "1d" }}
        {SERVER}
        name = "one"
        [[postgres]]
        host = "two"
        name = "two"
        probes = {{ wal = {{ interval = "30s", age = "90d" }}, locks = {{ enabled = false }} }}
        """
    )
    store, _ = config.metrics.make(config.store, config.postgres)
    asked = [("one", "locks"), ("one", "wal"), ("two", "wal"), ("two", "activity")]
    assert [store.retention.keep(*each) / 86_400 for each in asked] == [14, 2, 90, 1]
    assert (config.postgres[1].probes["wal"].every, config.postgres[1].probes["locks"].is_enabled) == (30, False)


def test_in_memory_metrics_are_kept_for_an_hour():
    """Or for less, if that is said; an agent without a store has no folder for a spool either."""
    config = read('store = "memory"\n[metrics]\nage = "10m"' + SERVER)
    store, spool = config.metrics.make(config.store, config.postgres)
    assert (store.retention.default, spool) == (600, None)
    assert read('store = "memory"').metrics.make(StorePlace())[0].retention.default == 3_600


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("metrics = 5", "expected a table [metrics], found the number 5"),
        ('metrics = "postgre://h/d"', 'metrics: expected "memory", "sqlite:///FILE" or'),
        ('[metrics]\nstor = "memory"', "unknown key 'stor' in [metrics], did you mean 'store'?"),
        ('[metrics]\nprobes = { wall = "1d" }', "unknown key 'wall' in [probes], did you mean 'wal'?"),
        ('[metrics]\npassword = "x"', "there is a password, but no server that would want it"),
        ('store = "sqlite:///x.db"\nmetrics = "sqlite:///x.db"', "this is the file of the history"),
        (f'metrics = "postgresql://h/d?bread=butter"\n{SERVER}', "metrics: not what libpq understands"),
        (f'[metrics]\nage = "0s"\n{SERVER}', "age: expected"),
    ],
)
def test_a_mistake_in_the_place_of_metrics_is_told(text, told):
    """With its line, before anything starts."""
    with pytest.raises(ConfigError) as raised:
        read(text, "u.toml")
    assert told in str(raised.value)
