"""One request and its answer: who asks, what is given, how it is refused, and what a route is.

Knows no job: resources say what happens.
"""

from .access import Access, AsgiScope, GrantAccess, Scope
from .fields import (
    CURSOR,
    FLAG,
    INSTANT,
    JSON,
    NAMES,
    TEXT,
    TEXTS,
    Nothing,
    body_reader,
    choice,
    choices,
    given,
    optional,
    parameters_of,
    query_of,
    schema_of,
    whole,
)
from .problem import CODE, MEDIA_TYPE, Problem, invalid, of_only_job, other_owner, problem_of, unavailable
from .request import body_of, refuse_other_sites
from .route import SMALL, Answer, Ask, Method, Route, Routes, Trace, at_path, linked, segments_of

__all__ = [
    "CODE",
    "CURSOR",
    "FLAG",
    "INSTANT",
    "JSON",
    "MEDIA_TYPE",
    "NAMES",
    "SMALL",
    "TEXT",
    "TEXTS",
    "Access",
    "Answer",
    "AsgiScope",
    "Ask",
    "GrantAccess",
    "Method",
    "Nothing",
    "Problem",
    "Route",
    "Routes",
    "Scope",
    "Trace",
    "at_path",
    "body_of",
    "body_reader",
    "choice",
    "choices",
    "given",
    "invalid",
    "linked",
    "of_only_job",
    "optional",
    "other_owner",
    "parameters_of",
    "problem_of",
    "query_of",
    "refuse_other_sites",
    "schema_of",
    "segments_of",
    "unavailable",
    "whole",
]
