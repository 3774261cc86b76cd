from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..stores import Store
from ._store_rows import START_US, MakeStore, no_hint


class StoreFixtures:
    @pytest.fixture
    def make_store(self) -> MakeStore:
        """Each call makes a new, closed store object, all on the same empty data."""
        msg = "a subclass says how its store is made: see the docstring of scheduler.testing.stores"
        raise NotImplementedError(msg)

    @pytest.fixture
    def store(self, make_store: MakeStore) -> Iterator[Store]:
        store = make_store()
        store.open(START_US, no_hint)
        yield store
        store.close()
