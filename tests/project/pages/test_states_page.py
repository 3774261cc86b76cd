"""The table and the picture in docs/states.md are made from the transitions that the scheduler goes by.

After a change of them: `python tests/project/pages/test_states_page.py --write`.
"""

import sys
from pathlib import Path

import pytest

from scheduler import JobState
from scheduler._values.state import TRANSITIONS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "states.md"
BEGIN = "<!-- made from scheduler/_values/state.py by tests/project/pages/test_states_page.py: begin -->"
END = "<!-- end -->"


def rendered(transitions=TRANSITIONS):
    """Render every way between states: a table with a row per state, and a picture for mermaid."""
    steps = list(transitions)
    table = [
        f"| state | {' | '.join(step.value for step in steps)} |",
        f"|---|{'---|' * len(steps)}",
        *(f"| {state.name} | {' | '.join(target(transitions[step], state) for step in steps)} |" for state in JobState),
    ]
    arrows = [
        f"    {before.name} --> {after.name}: {step.value}"
        for step, ways in transitions.items()
        for before, after in ways.items()
    ]
    picture = ["```mermaid", "stateDiagram-v2", "    [*] --> SCHEDULED", *arrows, "```"]
    return "\n".join([*table, "", *picture])


def target(ways, state):
    """Name where a step leads from a state; a dash if there is no such way."""
    return ways[state].name if state in ways else "-"


def replaced(page, text):
    """Put `text` between the markers of a page."""
    before, rest = page.split(BEGIN)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def test_the_page_shows_the_transitions_that_are_in_force():
    """A picture drawn by hand would soon show a scheduler that nobody has."""
    page = PAGE.read_text("utf-8")
    assert page == replaced(page, rendered()), "run `python tests/project/pages/test_states_page.py --write`"


@pytest.mark.parametrize("state", list(JobState), ids=lambda state: state.name)
def test_the_page_says_in_words_what_each_state_means(state):
    """A new state without a sentence would be a name in a table."""
    assert f"- **{state.name}**" in PAGE.read_text("utf-8")


def test_a_page_is_replaced_between_its_markers_alone():
    """What people wrote around the generated part is theirs."""
    assert replaced(f"above\n{BEGIN}\nold\n{END}\nbelow\n", "new") == f"above\n{BEGIN}\n\nnew\n\n{END}\nbelow\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"usage: python {sys.argv[0]} --write")
    PAGE.write_text(replaced(PAGE.read_text("utf-8"), rendered()), "utf-8")
