"""What is wrong in a file is told once: at its cause, and not where that shows as well."""

import pytest

from uptime_agent.config.config import parse_config
from uptime_agent.toml import ConfigError

BROKEN = '[[check]]\nname = "a"\nurl = "http://h"\ntags = ["web"]\nintervall = "5s"\n'
WHOLE = '[[check]]\nname = "b"\nurl = "http://h"\n'
WINDOW = '[[maintenance]]\nname = "w"\n'


def problems(text):
    """Return what is wrong with a file of that text."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "uptime.toml", {})
    return [each.text for each in caught.value.problems]


@pytest.mark.parametrize(
    "rest",
    [
        '[[group]]\nname = "g"\nmembers = ["a", "b"]\ndown_if = "2 of 2"\n',
        '[[group]]\nname = "g"\nmembers = ["web", "b"]\n',
        f'{WINDOW}schedule = "0 2 * * *"\nduration = "1h"\ntargets = ["a"]\n',
        f'{WINDOW}schedule = "0 2 * * *"\nduration = "1h"\ntags = ["web"]\n',
    ],
)
def test_who_names_a_check_in_which_something_is_wrong_has_done_nothing_wrong(rest):
    """The check is there, and is told what is wrong with it."""
    (told,) = problems(BROKEN + WHOLE + rest)
    assert told.startswith("unknown key 'intervall' in [[check]] 'a'")


def test_who_names_no_check_at_all_is_told_all_the_same():
    """Beside a check in which something is wrong."""
    told = problems(f'{BROKEN}{WHOLE}[[group]]\nname = "g"\nmembers = ["x"]\n')
    assert len(told) == 2
    assert "[[group]] 'g': there is no check called 'x'" in told[1]


def test_a_mode_that_there_is_not_says_nothing_of_what_belongs_to_modes():
    """Nobody knows which was meant."""
    (told,) = problems('[[check]]\nurl = "http://h"\nmode = "al"\nneed = 2\n')
    assert told.endswith('mode: expected one of "any" or "all", found "al"')


def test_a_step_that_is_wrong_hands_on_who_knows_what():
    """Those after it are told nothing of it."""
    step = '[[check.step]]\nurl = "http://h/{token}"\n'
    (told,) = problems(
        '[[check]]\nname = "s"\n[[check.step]]\nurl = "http://h"\nmethod = "get"\n'
        f'take = {{ token = {{ json = "$.t" }} }}\n{step}'
    )
    assert "method: expected a method" in told


@pytest.mark.parametrize(
    ("schedule", "duration", "said"),
    [
        ("0 2 * * *", "25h", "1d01h is longer than the 1d00h from one window to the next"),
        ("0 * * * *", "61m", "1h01m is longer than the 1h00m from one window to the next"),
        ("0 2 * * mon,tue", "2d", "2d00h is longer than the 1d00h from one window to the next"),
    ],
)
def test_a_window_ends_before_the_next_one_opens(schedule, duration, said):
    """Both lengths are told."""
    (told,) = problems(f'{WHOLE}{WINDOW}schedule = "{schedule}"\nduration = "{duration}"\n')
    assert told.startswith(f"[[maintenance]] 'w': duration: {said}")


@pytest.mark.parametrize(
    ("schedule", "duration"), [("0 2 * * *", "24h"), ("0 0 1 1 *", "300d"), ("@at 2030-01-01T00:00:00Z", "9d")]
)
def test_a_window_may_be_as_long_as_there_is_room(schedule, duration):
    """To the next one, or for ever if there is none."""
    config = parse_config(f'{WHOLE}{WINDOW}schedule = "{schedule}"\nduration = "{duration}"\n', "uptime.toml", {})
    assert len(config.maintenance) == 1
