"""Whatever a file holds, of ours or of another monitor: it is read, or refused in words. None ends in a traceback.

`HYPOTHESIS_PROFILE=thorough` tries 10,000 of each.
"""

import pytest
import yaml

from foreign_monitors import NAMES
from fuzzed_files import EXAMPLES, FILES, PIECES, SAMPLES, check_import, rearranged
from kit import examples
from mutants import mutants
from uptime_agent.config import read_config
from uptime_agent.toml import ConfigError

pytestmark = pytest.mark.timeout(3_600)

COUNT = examples(200)


@pytest.mark.parametrize("monitor", FILES)
def test_no_file_of_another_monitor_ends_in_a_traceback(monitor, tmp_path):
    """Whatever its bytes are."""
    seed = (SAMPLES / FILES[monitor]).read_bytes()
    file = tmp_path / NAMES[monitor]
    for mutant in mutants([seed, seed, seed[: len(seed) // 2], *PIECES], COUNT):
        file.write_bytes(mutant)
        check_import(monitor, file)


@pytest.mark.parametrize("monitor", FILES)
def test_no_value_in_a_file_ends_in_a_traceback(monitor, tmp_path):
    """Whatever stands where another one was expected, and what comes of it is a file that is read here."""
    seed = yaml.safe_load((SAMPLES / FILES[monitor]).read_bytes())
    file = tmp_path / NAMES[monitor]
    for tree in rearranged(seed, COUNT):
        file.write_bytes(tree)
        check_import(monitor, file)


def test_no_file_of_ours_ends_in_a_traceback(tmp_path):
    """A Config comes of it, or all that is wrong with it."""
    file = tmp_path / "uptime.toml"
    for mutant in mutants([each.read_bytes() for each in EXAMPLES] + PIECES, COUNT):
        file.write_bytes(mutant)
        try:
            told = read_config(file, {}, needs_secrets=False).warnings
        except ConfigError as refused:
            told = str(refused).splitlines()
        assert all(line.isprintable() for line in told)
