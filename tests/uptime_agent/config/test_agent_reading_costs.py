"""What reading a large configuration costs: much is done once for all checks, or not at all if nothing is wrong."""

import gc
import subprocess
import sys

import pytest

from uptime_agent.config.config import parse_config, read_config
from uptime_agent.toml import ConfigError, lines

CHECKS = 50
TEXT = "".join(f"[[check]]\nname = 'check {number}'\nurl = 'http://host/{number}'\n" for number in range(CHECKS))


@pytest.fixture
def looked_through(monkeypatch):
    """Count how often a text is looked through for the lines of its keys."""
    counted = []
    document = lines._Scanner.document

    def count(scanner):
        counted.append(scanner)
        document(scanner)

    monkeypatch.setattr(lines._Scanner, "document", count)
    return counted


def test_the_lines_of_a_text_are_looked_for_once_something_is_wrong(looked_through):
    """And then once, however many problems there are."""
    parse_config(TEXT, "f", {})
    assert not looked_through

    with pytest.raises(ConfigError) as refused:
        parse_config(TEXT + TEXT, "f", {})

    assert "f:151: [[check]] 'check 0': the name is taken by the check on line 1" in str(refused.value)
    assert len(looked_through) == 1


def test_checks_of_one_interval_share_their_schedule():
    """Five thousand objects that are equal would be made, and kept."""
    targets = parse_config(TEXT, "f", {}).targets
    assert len(targets) == CHECKS
    assert len({id(target.schedule) for target in targets}) == 1


def test_no_garbage_is_looked_for_while_a_file_is_read(tmp_path):
    """All that is read stays. Afterwards the collector is as it was, and may look once."""
    file = tmp_path / "f.toml"
    file.write_text(TEXT * 20)
    began = []
    gc.callbacks.append(lambda phase, _info: began.append(phase))
    try:
        with pytest.raises(ConfigError, match="is taken"):
            read_config(file, {})
    finally:
        gc.callbacks.pop()
    assert gc.isenabled()
    assert began in ([], ["start", "stop"])


def test_probes_are_imported_for_files_that_name_a_server():
    """They take as long as all checks, and `timerqueue check` is to answer at once."""
    code = "import sys, uptime_agent.app; print('uptime_agent.postgres' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"
