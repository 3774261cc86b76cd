"""Why a job did or did not run."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

from attrs import frozen

from .._protocol import INSTANT, Answer, Ask, given
from .view import why_view


@frozen(kw_only=True)
class WhyAsked:
    """Which instant is meant."""

    at: datetime | None = given(INSTANT, None, "The instant. None: the last due one, or why it does not start now.")  # noqa: RUF009 - a field


async def get_why(ask: Ask[WhyAsked, None]) -> Answer:
    """Say why a job did or did not run at an instant. The job may be gone."""
    return Answer(HTTPStatus.OK, why_view(await ask.s.why(ask.id, ask.query.at), ask))
