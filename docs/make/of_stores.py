"""The page about stores: the verbs that each has, and the extensions that a store may have."""

from __future__ import annotations

from prose import paragraphs, public, verb

from scheduler import stores
from scheduler.stores import Store


def store_page() -> str:
    """Return the page of the protocol of stores and its extensions."""
    kinds = [getattr(stores, name) for name in stores.__all__]
    extensions = [each for each in kinds if getattr(each, "_is_protocol", False) and each is not Store]
    return "\n\n".join(
        [
            "# Reference: stores",
            "[Writing a store](../writing-a-store.md) says how to begin. Every store has the verbs of `Store`.",
            "The other protocols are extensions: a store may have them, or not.",
            *(protocol(each) for each in (Store, *extensions)),
        ]
    )


def protocol(kind: type) -> str:
    """Return a protocol with its verbs."""
    verbs = [verb(name, member) for name, member in public(kind)]
    return "\n\n".join([f"## {kind.__name__}", paragraphs(kind.__doc__ or ""), *verbs])
