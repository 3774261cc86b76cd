"""News for a display."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from ..standing import (
    Checked,
    CheckedAgain,
    ChecksLeftOut,
    Closed,
    GroupRecalled,
    LeftOutBefore,
    News,
    NotChecked,
    Opened,
    Outage,
    Remembered,
    Trouble,
)
from .display import Display, NotShown, Screen
from .notices import describe, describe_downtime, describe_group, describe_outage, describe_pause


class Monitor:
    """Shows news. Without a reader it calls `on_gone`. `clean` masks secrets.

    `trouble`: why the output failed; None if its reader left.
    """

    def __init__(self, display: Display, on_gone: Callable[[], None], clean: Callable[[str], str] = str) -> None:
        self.trouble: NotShown | None = None
        self._clean = clean
        self._waiting: list[Callable[[Display], None]] | None = None
        self._display: Display | None = display
        self._on_gone = on_gone

    @property
    def refresh_every(self) -> float | None:
        """See `Display`."""
        return None if self._display is None else self._display.refresh_every

    def hold(self) -> None:
        """Keep news back until `begin`."""
        self._waiting = []

    def begin(self, view: Screen) -> None:
        """Show the view, then held news."""
        waiting, self._waiting = self._waiting or [], None
        self.show(lambda display: display.started(view))
        for action in waiting:
            self.show(action)

    def hear(self, news: News) -> None:
        """Show news of the board."""
        if isinstance(news, Trouble):
            self.notice(describe(news))
            return
        if isinstance(news, Outage):
            self.notice(describe_outage(news))
            return
        match news:
            case Checked():
                self.show(lambda display: display.checked(news.target, is_change=news.is_change))
            case Opened() | Closed() if news.incident.is_group:
                self.notice(describe_group(news))
            case Opened() | Closed() | GroupRecalled():
                pass  # its check was shown, or an earlier process told it
            case Remembered():
                self.show(lambda display: display.remembered(news.target))
            case ChecksLeftOut():
                self.show(lambda display: display.missed(news.target, news.missed))
            case LeftOutBefore():
                self.notice(describe_downtime(news))
            case NotChecked() | CheckedAgain():
                self.notice(describe_pause(news))
            case _:
                assert_never(news)

    def notice(self, text: str) -> None:
        """See `Display`."""
        self.show(lambda display: display.notice(self._clean(text)))

    def show(self, action: Callable[[Display], None]) -> None:
        """Call the display, unless it is gone."""
        if self._waiting is not None:
            self._waiting.append(action)
            return
        if self._display is None:
            return
        try:
            action(self._display)
        except OSError as exc:
            self._display = None
            if not isinstance(exc, BrokenPipeError):  # as with `| head`: the reader has read enough and leaves
                self.trouble = NotShown((exc.strerror or str(exc)).lower())
            self._on_gone()
