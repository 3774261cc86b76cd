"""The spool: what could not be stored waits on disk, in order, none twice, within a bound."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from metric_kit import SETTINGS, WAL, outcome, sample
from programs import path_of
from uptime_agent.postgres.contract import Failure, OutcomeKind
from uptime_agent.postgres.storage import Counts, SampleBatch, Spool, SpoolFailed, Unstorable, fingerprint

BATCHES = [
    SampleBatch((sample(at, ("a", at)), sample(at, ("b", None), database="app")), (outcome(at),)) for at in range(20)
]
ONE = Counts(2, 2, 1)


@pytest.fixture(scope="module", autouse=True)
def unsynced():
    """Spare the disk: that each batch is synced has a test of its own, which counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture
def spool(tmp_path):
    spool = Spool(tmp_path / "spool", most_bytes=64_000)
    spool.open()
    yield spool
    spool.close()


def replayed(spool):
    """Take everything out, and return the instants of the outcomes."""
    found = []
    while (batch := spool.oldest()) is not None:
        found += [each.due - sample().at for each in batch.outcomes]
        spool.done()
    return found


def content(batch):
    """Return what of a batch must come back."""
    samples = [
        (each.probe.name, each.probe.on_change, each.target, each.database, each.at, each.rows, each.left_out)
        for each in batch.samples
    ]
    return samples, batch.outcomes


def test_batches_come_back_in_order_and_whole(spool):
    """With what a failure said, and rows that were left out."""
    told = SampleBatch(
        (sample(7, ("ä\n", 1), left_out=3), sample(8, probe=SETTINGS)),
        (outcome(7, OutcomeKind.FAILED, failure=Failure.QUERY, reason="x"),),
    )
    for batch in (*BATCHES, told):
        spool.append(batch)
    assert spool.waiting.samples == 42
    for batch in (*BATCHES, told):
        assert content(spool.oldest()) == content(batch)
        assert content(spool.oldest()) == content(batch)
        spool.done()
    assert spool.oldest() is None
    assert not spool.waiting
    assert spool.size == 0


def test_several_batches_come_as_one(spool):
    """So that a replay needs fewer transactions."""
    for batch in BATCHES:
        spool.append(batch)
    assert [each.due - sample().at for each in spool.oldest(15).outcomes] == [0, 1, 2]
    spool.done()
    assert replayed(spool) == list(range(3, 20))


def test_a_spool_that_is_opened_again_goes_on_where_it_was(tmp_path):
    """Also after other batches have come in."""
    for count in range(4):
        spool = Spool(tmp_path, most_bytes=16_000)
        spool.open()
        assert spool.waiting == Counts(2 * count, 2 * count, count)
        spool.append(BATCHES[2 * count])
        spool.append(BATCHES[2 * count + 1])
        assert spool.oldest().outcomes == BATCHES[count].outcomes
        spool.done()
        spool.close()


def test_a_snapshot_has_the_same_fingerprint_after_the_spool(spool):
    """Or a replay would store what has not changed."""
    spool.append(SampleBatch((sample(0, ("b", "1"), ("a", None), probe=SETTINGS),)))
    (found,) = spool.oldest().samples
    assert fingerprint(found) == fingerprint(sample(5, ("a", None), ("b", "1"), probe=SETTINGS))


def test_a_full_spool_drops_its_oldest_and_counts_it(tmp_path):
    """It never takes more room than it may."""
    spool = Spool(tmp_path, most_bytes=8_000)
    spool.open()
    for batch in BATCHES * 5:
        spool.append(batch)
        assert spool.size <= 8_000
        assert sum(path.stat().st_size for path in tmp_path.glob("*.spool")) <= 8_000
    assert (spool.waiting + spool.lost).outcomes == 100
    left = replayed(spool)
    assert left == [each % 20 for each in range(100)][-len(left) :]
    assert len(left) == 100 - spool.lost.outcomes > 5


def test_a_batch_larger_than_the_spool_is_lost_and_counted(tmp_path):
    """What waits already stays."""
    spool = Spool(tmp_path, most_bytes=2_000)
    spool.open()
    spool.append(BATCHES[0])
    spool.append(SampleBatch((sample(0, *(("x" * 100, n) for n in range(100))),)))
    assert spool.lost == Counts(1, 100, 0)
    assert spool.waiting == ONE


def test_a_torn_end_costs_the_torn_record_alone(tmp_path):
    """Cut at every byte of the last record; what is appended afterwards is found."""
    spool = Spool(tmp_path / "whole", most_bytes=64_000)
    spool.open()
    ends = []
    for batch in BATCHES[:3]:
        spool.append(batch)
        ends.append(spool.size)
    (path,) = spool.folder.glob("*.spool")
    whole = path.read_bytes()
    for cut in range(ends[1], ends[2]):
        torn = Spool(tmp_path / f"torn{cut}", most_bytes=64_000)
        torn.folder.mkdir()
        (torn.folder / path.name).write_bytes(whole[:cut])
        torn.open()
        torn.append(BATCHES[3])
        assert replayed(torn) == [0, 1, 3]
        torn.close()


@given(st.data())
def test_a_flipped_bit_gives_no_wrong_batch(tmp_path_factory, data):
    """What comes back is a beginning of what was put in."""
    folder = tmp_path_factory.mktemp("flipped")
    spool = Spool(folder, most_bytes=64_000)
    spool.open()
    for batch in BATCHES[:4]:
        spool.append(batch)
    spool.close()
    (path,) = folder.glob("*.spool")
    flipped = bytearray(path.read_bytes())
    flipped[data.draw(st.integers(0, len(flipped) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(flipped)
    spool.open()
    found = replayed(spool)
    assert found == list(range(len(found)))
    assert len(found) < 4
    spool.close()


def test_a_damaged_segment_costs_its_rest(tmp_path):
    """The segments behind it are replayed."""
    spool = Spool(tmp_path, most_bytes=16_000)
    spool.open()
    for batch in BATCHES[:6]:
        spool.append(batch)
    spool.close()
    paths = sorted(tmp_path.glob("*.spool"))
    assert len(paths) > 2
    paths[0].write_bytes(paths[0].read_bytes()[:-1] + b"?")
    spool.open()
    assert spool.damaged == 1
    found = replayed(spool)
    assert found[-1] == 5
    assert len(found) == 5
    spool.close()


def test_a_disk_that_is_full_leaves_the_spool_as_it_was(spool, monkeypatch):
    """A part of a record is cut off again."""
    spool.append(BATCHES[0])

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        for _ in range(3):
            with pytest.raises(SpoolFailed, match="No space left"):
                spool.append(BATCHES[1])
    spool.append(BATCHES[2])
    assert spool.waiting == ONE + ONE
    assert replayed(spool) == [0, 2]


def test_each_batch_is_synced_once(spool, monkeypatch):
    """What `append` has returned from survives a loss of power."""
    import os  # noqa: PLC0415

    synced = []
    real = os.fsync
    monkeypatch.setattr("os.fsync", lambda file: (synced.append(os.fstat(file).st_ino), real(file)))
    spool.append(BATCHES[0])
    assert len(synced) == 2  # and the folder, for the new name
    spool.append(BATCHES[1])
    assert len(synced) == 3


def test_one_process_has_the_spool(spool):
    """Two would replay each other's batches."""
    with pytest.raises(SpoolFailed, match="another agent's"):
        Spool(spool.folder).open()


def test_what_cannot_be_stored_is_not_spooled(spool):
    """The error comes at once."""
    with pytest.raises(Unstorable):
        spool.append(SampleBatch((sample(0, ("a", "many"), probe=WAL),)))
    assert not spool.waiting


@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 9])
def test_a_kill_at_each_line_of_a_replay_stores_all_and_nothing_twice(tmp_path, step):
    """Processes of their own, kill -9; the spool and the SQLite file are what the next one finds.

    They lie in memory where that can be: what a process has written outlives it there as well, and nobody waits for a
    disk thousands of times.
    """
    program = path_of("spool_crash")
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        ended = subprocess.run(
            [sys.executable, program, folder, str(step)], capture_output=True, text=True, check=True, timeout=500
        )
    report = json.loads(ended.stdout)
    assert report["wrong"] == []
    assert report["killed"] > 200 / step
