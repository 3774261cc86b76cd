"""TOML read strictly, within bounds.

Mistakes have lines. Pure: any thread.
"""

from __future__ import annotations

from .bounds import over
from .collector import without_collections
from .content import content_of, what_else
from .lines import KeyLines, long_number, what_is_wrong
from .option import Option
from .readers import (
    VARIABLE,
    Reader,
    Unfit,
    Unset,
    boolean,
    bounded,
    label,
    labels,
    megabytes,
    one_of,
    seconds,
    text,
    whole,
)
from .secrets import Secret, is_unset, leaving_out_unset, secret, text_of_file
from .sections import ConfigError, Enough, Problem, Problems, Section, one_form, suggestion

__all__ = [
    "VARIABLE",
    "ConfigError",
    "Enough",
    "KeyLines",
    "Option",
    "Problem",
    "Problems",
    "Reader",
    "Secret",
    "Section",
    "Unfit",
    "Unset",
    "boolean",
    "bounded",
    "content_of",
    "is_unset",
    "label",
    "labels",
    "leaving_out_unset",
    "long_number",
    "megabytes",
    "one_form",
    "one_of",
    "over",
    "seconds",
    "secret",
    "suggestion",
    "text",
    "text_of_file",
    "what_else",
    "what_is_wrong",
    "whole",
    "without_collections",
]
