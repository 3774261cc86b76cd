"""Which nodes may have a job.

Pure: nodes that know the same answer the same. Any thread.
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
