"""Docstrings and comments can be understood at first reading: short sentences, nouns, one word for each idea.

The list READ grows: a folder or a file stands in it once all of its sentences have been reread.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
READ = (
    "schedule",
    "scheduler",
    "timerqueue",
    "uptime_agent/checks",
    "uptime_agent/commands",
    "uptime_agent/config",
    "uptime_agent/heartbeat",
    "uptime_agent/imports",
    "uptime_agent/libpq",
    "uptime_agent/migration",
    "uptime_agent/notify",
    "uptime_agent/postgres",
    "uptime_agent/probing",
    "uptime_agent/quorum",
    "uptime_agent/show",
    "uptime_agent/tables",
    "uptime_agent/standing",
    "uptime_agent/testing",
    "uptime_agent/text",
    "uptime_agent/toml",
    "uptime_agent/uptime",
)
FILES = sorted(
    file for each in [ROOT / "src" / name for name in READ] for file in ([each] if each.suffix else each.rglob("*.py"))
)

LONGEST_FIRST_SENTENCE = 20
LONGEST_SENTENCE = 25

ADVICE = {
    r"(is|are|was|were) (not )?to": "say what it does, or that it must or may",
    r"by then": "say when",
    r"(so|as) many(?! as)|as many": "say how many",
    r"nobody|somebody|anybody|everybody|whoever|whomever|whose who": "name who it is: a task, a caller, a node",
    r"anew": "say 'again'",
    r"beside": "say 'besides' or 'next to'",
    r"that is so|is so|it is so": "say what is the case",
    r"(those|one|ones|all) (that|who|which|whose)": "name the thing: 'the jobs that', 'a claim that'",
}
SYNONYMS = {
    r"volleys?": "bundle",
    r"crews?": "workers",
    r"take-overs?|takings?-over": "takeover",
    r"hand-overs?": "handoff",
    r"time-?slots?": "tick",
}
IN_THE_SCHEDULER = {r"agents?": "node (an agent is the program; stored names and options go in backticks)"}


def prose(file):
    """Yield each paragraph of docstrings and comments: its line, its text, and whether a docstring begins with it."""
    code = file.read_text("utf-8")
    for node in ast.walk(ast.parse(code)):
        for each in getattr(node, "body", None) or () if isinstance(getattr(node, "body", None), list) else ():
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                for number, (line, text) in enumerate(paragraphs(each.value.value, each.lineno)):
                    yield line, text, number == 0
    for line, text in comments(code):
        yield line, text, False


def paragraphs(text, first):
    """Yield each paragraph of a docstring with its line. Indented blocks are tables and code; a list item is one."""
    lines = text.split("\n")
    indent = min((len(each) - len(each.lstrip()) for each in lines[1:] if each.strip()), default=0)
    start, gathered, is_table = first, [], False
    for number, raw in enumerate(lines):
        line = raw if number == 0 else raw[indent:]
        is_item = re.match(r"(- |\* |\d+\. )", line)
        if (not line.strip() or is_item) and gathered:
            yield start, " ".join(gathered)
            gathered = []
        if not line.strip():
            is_table = False
        elif line.startswith("  ") and not gathered:
            is_table = True
        elif not is_table:
            start = start if gathered else first + number
            gathered.append(line.strip().removeprefix("- "))
    if gathered:
        yield start, " ".join(gathered)


def comments(code):
    """Yield each comment with its line; comments on lines of their own that follow one another are one."""
    start, last, gathered = 0, -1, []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = re.sub(r"^#\s*|(noqa|type: ignore)\S*( [A-Z]+\d+,?)*( - )?|-{3,}", "", token.string)
        stands_alone = not token.line[: token.start[1]].strip()
        if gathered and not (stands_alone and token.start[0] == last + 1 and text):
            yield start, " ".join(gathered)
            gathered = []
        if not gathered:
            start = token.start[0]
        if text.strip():
            gathered.append(text.strip())
        last = token.start[0] if stands_alone else -1
    if gathered:
        yield start, " ".join(gathered)


def sentences(text):
    """Split a paragraph where a sentence ends."""
    return [each for each in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'(0-9])", text) if each.strip()]


def findings(file, line, text, begins_docstring):
    """Yield what is wrong with the sentences of a paragraph, and what to do."""
    words_of_the_scheduler = IN_THE_SCHEDULER if file.is_relative_to(ROOT / "src" / "scheduler") else {}
    for number, sentence in enumerate(sentences(text)):
        where = f"{file.relative_to(ROOT)}:{line}: {sentence!r}"
        most = LONGEST_FIRST_SENTENCE if begins_docstring and number == 0 else LONGEST_SENTENCE
        if len(sentence.split()) > most:
            yield f"{where}: {len(sentence.split())} words; say it in sentences of at most {most}"
        said = re.sub(r"`[^`]*`", "``", sentence)
        for pattern, advice in ADVICE.items():
            if found := re.search(rf"\b({pattern})\b", said, re.IGNORECASE):
                yield f"{where}: {found[0]!r}: {advice}"
        for pattern, word in (SYNONYMS | words_of_the_scheduler).items():
            if found := re.search(rf"\b({pattern})\b", said, re.IGNORECASE):
                yield f"{where}: the glossary calls {found[0]!r} {word}"


def test_each_sentence_is_short_and_names_things():
    """A reader who has never seen the project understands each sentence alone, at first reading."""
    found = [each for file in FILES for paragraph in prose(file) for each in findings(file, *paragraph)]
    assert found == [], "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Publish these ticks. A tick that has a queue position is replaced there.", 0),
        ("Put the ticks, instead of those that have a place there.", 1),
        ("The run is to end.", 1),
        ("A pause that nobody has asked for.", 1),
        ("Call `anew` of `agents=`.", 0),
        ("The agent holds a lease.", 1),
        (" ".join(["word"] * 21) + ".", 1),
        ("Fine. " + " ".join(["Word"] + ["word"] * 24) + ".", 0),
        ("Fine. " + " ".join(["Word"] + ["word"] * 25) + ".", 1),
    ],
)
def test_the_check_sees_what_it_looks_for(text, found):
    """The check above would be worth nothing if it let such sentences pass."""
    file = ROOT / "src" / "scheduler" / "_scheduler.py"
    assert len(list(findings(file, 1, text, begins_docstring=True))) == found


def test_paragraphs_and_comments_are_told_apart():
    """Tables inside docstrings are no sentences, and a block of comment lines is one text."""
    docstring = "First.\n\n    Second\n    goes on.\n    - an item\n\n        a table\n    "
    assert list(paragraphs(docstring, 10)) == [(10, "First."), (12, "Second goes on."), (14, "an item")]
    code = "# one\n# goes on\nx = 1  # two\ny = 2  # noqa: SLF001 - three\n# ---- four ----\n"
    assert list(comments(code)) == [(1, "one goes on"), (3, "two"), (4, "three"), (5, "four")]
