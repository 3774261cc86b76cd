"""The one error of this package."""


class ScheduleError(ValueError):
    """A schedule cannot be made from what was given, or one gave an answer that no schedule may give.

    Raised when a value is made (bad text, naive datetimes, what can never come), and by whatever asks a schedule that
    answers wrongly. The text says what was wrong, shows the value and says what to write instead.
    """
