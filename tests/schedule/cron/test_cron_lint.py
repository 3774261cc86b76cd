"""Warnings: expressions that are right and mean something else than they seem to."""

import pytest

from schedule import Cron


@pytest.mark.parametrize(
    ("expression", "warning"),
    [
        ("0 0 1-1 * *", "day-of-month '1-1' is 1 alone; for all values write *"),
        ("0 22-2 * * *", "hour '22-2' runs past the end: 22, 23, 0, 1, 2"),
        ("0 0 * * fri-mon", "day-of-week 'fri-mon' runs past the end: 5, 6, 0, 1"),
        ("59/15 * * * *", "minute '59/15' is 59 alone: the step leads past the end"),
        ("50/15 * * * *", "minute '50/15' is 50 alone: the step leads past the end"),
        ("0 0 * * 6/1", None),
        ("0 0 * * 6/2", "day-of-week '6/2' is 6 alone: the step leads past the end"),
        ("*/90 * * * *", "minute '*/90' is 0 alone: the step leads past the end"),
        ("*/7 * * * *", "minute '*/7' starts again each hour: 0, 7, ..., 49, 56 and again 0"),
        ("*/45 * * * *", "minute '*/45' starts again each hour: 0, 45 and again 0"),
        ("0 */5 * * *", "hour '*/5' starts again each day: 0, 5, 10, 15, 20 and again 0"),
        ("0 0 */2 * *", "day-of-month '*/2' starts again each month: 1, 3, ..., 29, 31 and again 1"),
        ("0 0 * */5 *", "month '*/5' starts again each year: 1, 6, 11 and again 1"),
        ("0 0 * * */2", "day-of-week '*/2' starts again each week: 0, 2, 4, 6 and again 0"),
        ("*/7 * * * * *", "second '*/7' starts again each minute: 0, 7, ..., 49, 56 and again 0"),
        ("0 0 13 * fri", "day-of-month '13' or day-of-week 'fri' is enough: it comes on days of either"),
        ("0 0 */1 * fri", "day-of-month '*/1' and day-of-week 'fri' must both hold, because one starts with a star"),
        ("0 0 31 * *", "day-of-month 31 is not in every month; the last day is L"),
        ("0 0-23 * * *", "hour '0-23' is every hour, but not the hour that comes twice when clocks are set back; * is"),
    ],
)
def test_surprises_are_named(expression, warning):
    """One row per surprise; the sentence says what the expression really means."""
    assert Cron(expression).warnings == ((warning,) if warning else ())


@pytest.mark.parametrize(
    ("expression", "here", "there"),
    [
        ("0 15 10 ? * 6L", "satL", "friL"),
        ("0 15 10 ? * 2-6", "tue-sat", "mon-fri"),
        ("15 10 ? * 7#2", "sun#2", "sat#2"),
        ("15 10 ? * 1,3/2", "mon,wed/2", "sun,tue/2"),
    ],
)
def test_numbers_of_weekdays_beside_a_question_mark_may_be_another_s(expression, here, there):
    """The sign is Quartz's and EventBridge's, and their week begins with 1."""
    weekday = expression.split()[-1]
    (warning,) = Cron(expression).warnings
    assert warning.startswith(f"day-of-week {weekday!r} next to a ? is {here} here, where 0 is Sunday; Quartz and ")
    assert warning.endswith(f" mean {there}: write names")


@pytest.mark.parametrize(
    "expression",
    [
        "* * * * *",
        "*/5 * * * *",
        "*/15 4 * 2 *",
        "0 */6 * * *",
        "0 9 * * mon-fri",
        "0 9 * * fri-sun",
        "0 9 * * 1-7",
        "10/20 * * * *",
        "0 0 1 */3 *",
        "0 0 L * *",
        "0 0 15W,L * *",
        "0 0 ? * fri#2",
        "0 0 ? * 0,6",
        "0 0 1 * ?",
        "H H * * *",
        "H/15 H(8-11) * * *",
        "0 0 0 1 1 * 2030",
        "@daily",
    ],
)
def test_plain_expressions_have_no_warnings(expression):
    """A warning about everything is a warning about nothing."""
    assert Cron(expression).warnings == ()
