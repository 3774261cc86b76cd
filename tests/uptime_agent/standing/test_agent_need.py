"""How many addresses of a target must be up, k of n: the verdict, and a target at real addresses."""

import pytest
from hypothesis import given, strategies as st

from schedule import Every
from scheduler import Scheduler
from timerqueue.testing import START
from uptime_agent.checks import BY_SCHEME, CheckResult, Mode, Status
from uptime_agent.config.config import parse_config
from uptime_agent.config.preview import config_lines
from uptime_agent.standing.report import report_of
from uptime_agent.standing.status import TargetStatus, fold
from uptime_agent.text import parse_url
from uptime_agent.toml import ConfigError

LETTERS = {"u": Status.UP, "g": Status.DEGRADED, "d": Status.DOWN, "?": Status.UNKNOWN}


def results(letters):
    """Make a result for each letter."""
    errors = {"u": None, "g": "slow", "d": "refused", "?": "no route"}
    return [CheckResult(status=LETTERS[each], error=errors[each]) for each in letters]


@pytest.mark.parametrize(
    ("letters", "need", "status", "error"),
    [
        ("uuu", 2, "up", None),
        ("uud", 2, "degraded", "1 of 3 addresses: refused"),
        ("udd", 2, "down", "1 of 3 addresses up, needs 2: refused"),
        ("ddd", 2, "down", "3 of 3 addresses: refused"),
        ("uud", None, "down", "2 of 3 addresses up, needs all: refused"),
        ("uuu", None, "up", None),
        ("uug", None, "degraded", "1 of 3 addresses: slow"),
        ("u", 2, "down", "1 of 1 addresses up, needs 2"),
        ("d", 2, "down", "refused"),
        ("u?", 2, "unknown", "1 of 2 addresses up, needs 2"),
        ("u?", None, "up", None),
        ("ud?", 2, "down", "1 of 3 addresses up, needs 2: refused"),
        ("uud?", 2, "degraded", "2 of 4 addresses: refused"),
        ("??", 2, "unknown", "no route"),
        ("udd", 1, "degraded", "2 of 3 addresses: refused"),
    ],
)
def test_fewer_than_it_needs_are_down_and_some_are_degraded(letters, need, status, error):
    """Unknown ones count for nobody: it is not known to be down for want of them."""
    verdict = fold(results(letters), need)
    assert (verdict.status.value, verdict.error) == (status, error)


@given(st.text("ugd?", min_size=1, max_size=6), st.integers(1, 6))
def test_a_target_that_needs_more_is_never_better_off(letters, need):
    """And one address is what it has needed so far."""
    rank = [Status.UP, Status.DEGRADED, Status.UNKNOWN, Status.DOWN]
    found = [rank.index(fold(results(letters), each).status) for each in (need, need + 1)]
    assert found == sorted(found)
    assert fold(results(letters), 1) == fold(results(letters))


def test_a_report_is_judged_by_what_its_target_needs():
    """History and displays say the same."""
    target = TargetStatus("api", "http://h", "http", need=None)
    assert report_of(results("ud"), target).verdict.status is Status.DOWN


async def test_addresses_that_refuse_make_it_down_below_what_it_needs(up, target_check):
    """One of two is up: enough for one, too few for two."""
    url = parse_url(f"tcp://many.test:{up.port}", {"tcp": None})
    hosts = {"many.test": ["127.0.0.1", "127.0.0.7"]}
    check = target_check(BY_SCHEME["tcp"].make(url=url), hosts=hosts, mode=Mode.ALL)
    scheduler = Scheduler()
    scheduler.add(check.run, Every("1h"), id="many")
    found = (await scheduler.run_once())["many"].results
    assert [fold(found, need).status for need in (1, 2)] == [Status.DEGRADED, Status.DOWN]


FILE = '[[check]]\nname = "many"\nurl = "tcp://h:1"\n'


def test_a_file_says_how_many():
    """For mode all, in a check or for all of them; and the preview shows it."""
    (target,) = parse_config(FILE + 'mode = "all"\nneed = 2\n', "f", {}).targets
    assert target.need == 2
    config = parse_config('[defaults]\nmode = "all"\nneed = "all"\n' + FILE, "f", {})
    assert config.targets[0].need is None
    assert "mode all, needs all" in next(iter(config_lines(config, START)))
    (target,) = parse_config("[defaults]\nneed = 3\n" + FILE, "f", {}).targets
    assert target.need == 1


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("need = 2", 'need: is for mode = "all", which checks every address'),
        ('mode = "all"\nneed = 0', 'need: expected "all" or a whole number from 1 to 16, found the number 0'),
        ('mode = "all"\nneed = 17', 'need: expected "all" or a whole number from 1 to 16, found the number 17'),
        ('mode = "all"\nneed = true', 'need: expected "all" or a whole number from 1 to 16, found true'),
        ('mode = "all"\nneed = "most"', 'need: expected "all" or a whole number from 1 to 16, found "most"'),
    ],
)
def test_what_makes_no_sense_is_told(lines, problem):
    """With its line, as every mistake."""
    with pytest.raises(ConfigError) as caught:
        parse_config(FILE + lines, "f", {})
    assert problem in str(caught.value)
