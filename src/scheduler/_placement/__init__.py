"""Placement: for which of the agents that are there is something? Pure, so that all who know the same say the same.

Offers the texts of labels and of parts of jobs (`read_part`), the choice of agents (`chosen`), and who of these has
which part (`assigned`). Does not know jobs, stores, or how agents come and go. Any thread.
"""

from __future__ import annotations

from .choice import Candidate, assigned, chosen
from .labels import checked_labels, has_labels, is_label, labels_of
from .parts import EVERY_AGENT, OfAgent, OneOf, fits, is_part, lack_text, lacks, read_part

__all__ = [
    "EVERY_AGENT",
    "Candidate",
    "OfAgent",
    "OneOf",
    "assigned",
    "checked_labels",
    "chosen",
    "fits",
    "has_labels",
    "is_label",
    "is_part",
    "labels_of",
    "lack_text",
    "lacks",
    "read_part",
]
