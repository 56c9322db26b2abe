"""What is said of a machine, where it answers the empty string and where it does not."""

import pytest

from lengthwise.automata.description import Description
from lengthwise.automata.labeled import labeled_dfa
from lengthwise.automata.regex import dfa_from_regex


@pytest.mark.parametrize(
    ("answers_empty", "states", "shortest"),
    [(True, "states: 2, the fewest", "(the empty one)"), (False, "states: 2, 1 in the smallest machine", "accept a")],
)
def test_a_net_needs_no_state_for_the_empty_string(answers_empty: bool, states: str, shortest: str) -> None:
    """Nets answer strings of one symbol or more, all of which this one accepts."""
    lines = Description(labeled_dfa(dfa_from_regex("(a|b)+")), answers_empty=answers_empty).lines()
    assert lines[0] == states
    assert any(line.startswith("shortest strings: ") and shortest in line for line in lines)
