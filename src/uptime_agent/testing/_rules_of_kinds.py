from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from timerqueue import SystemClock

from ..checks import Attempt, Check, Clash, Kind, Stopwatch
from ..text import parse_url
from ..toml import Unfit

UrlOf: TypeAlias = Callable[[str, int], str]
Examples: TypeAlias = Sequence[Mapping[str, Any]]

PATIENCE = 60.0
"""Seconds until a hanging test fails."""

SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))

TEXTS = st.text(max_size=40) | st.sampled_from(["", "\x00", "1s", "-1", "a:b", "$HOME", "${X}", "\x1b[2J", "é" * 300])
PLAIN = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXTS,
    st.datetimes(max_value=datetime(9999, 1, 1)),  # noqa: DTZ001 - TOML has local times
    st.dates(max_value=date(9999, 1, 1)),
    st.times(),
)
TOML = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)


def made(kind: Kind, url: str, options: Mapping[str, Any]) -> Check:
    read = {key: kind.options[key](value) for key, value in options.items()}
    return kind.make(url=parse_url(url, kind.schemes), **read)


class KindConformance:
    """The suite for every kind of check. Needs fixtures `kind` and `examples`."""

    @pytest.fixture
    def kind(self) -> Kind:
        msg = "a subclass says which kind it tests: see the docstring of uptime_agent.testing"
        raise NotImplementedError(msg)

    @pytest.fixture
    def examples(self) -> Examples:
        """Tables of options as in a file. Together they have each option."""
        return [{}]

    @pytest.fixture
    def url_of(self, kind: Kind) -> UrlOf:
        """Writes a URL for a host and a port."""
        scheme, port = next(iter(kind.schemes.items()))
        return lambda host, at: f"{scheme}://{host}" if port == 0 else f"{scheme}://{host}:{at}"

    @pytest.fixture
    def attempt(self) -> Callable[..., Attempt]:
        """Makes an attempt at an address."""
        return lambda address="127.0.0.1": Attempt(address, Stopwatch(SystemClock()), PATIENCE)

    def test_the_examples_have_each_option(self, kind: Kind, examples: Examples) -> None:
        assert {key for each in examples for key in each} == set(kind.options)

    def test_a_check_is_a_value(self, kind: Kind, examples: Examples, url_of: UrlOf) -> None:
        """Many runs share a check."""
        for options in examples:
            check = made(kind, url_of("host.example", 7), options)
            assert check == made(kind, url_of("host.example", 7), options)
            with pytest.raises(AttributeError):
                check.url = check.url  # type: ignore[misc] # which is the test

    def test_its_url_is_the_one_that_it_was_made_of(self, kind: Kind, examples: Examples, url_of: UrlOf) -> None:
        url = parse_url(url_of("host.example", 7), kind.schemes)
        assert all(made(kind, url_of("host.example", 7), options).url == url for options in examples)

    def test_a_password_in_its_url_is_secret(self, kind: Kind, examples: Examples, url_of: UrlOf) -> None:
        """Or the kind takes no password."""
        url = url_of("host.example", 7).replace("://", "://me:hunter22@", 1)
        shown: list[str] = []
        for options in examples:
            try:
                check = made(kind, url, options)
            except Clash as exc:
                shown.append(str(exc))
                continue
            assert "hunter22" in check.secrets
            shown.append(repr(check))
        assert "hunter22" not in "".join(shown)

    def test_a_reader_takes_a_value_or_says_what_it_expected(self, kind: Kind) -> None:

        @SETTINGS
        @given(value=TOML)
        def read(value: Any) -> None:
            for reader in kind.options.values():
                with suppress(Unfit):
                    reader(value)

        read()

    def test_options_that_were_read_make_a_check_or_clash(self, kind: Kind, examples: Examples, url_of: UrlOf) -> None:
        values = {key: [each[key] for each in examples if key in each] for key in kind.options}
        tables = st.fixed_dictionaries({}, optional={key: st.sampled_from(found) for key, found in values.items()})

        @SETTINGS
        @given(options=tables)
        def make(options: Mapping[str, Any]) -> None:
            blamed = "url"
            try:
                made(kind, url_of("host.example", 7), options)
            except Clash as exc:
                blamed = exc.key
            assert blamed in {"url", *options}

        make()
