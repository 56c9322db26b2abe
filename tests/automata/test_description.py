"""What is said of a machine, where it answers the empty string and where it does not."""

import numpy as np
import pytest

from lengthwise.automata.description import Description, described_monoid
from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE


@pytest.mark.parametrize(
    ("answers_empty", "states", "shortest"),
    [(True, "states: 2, the fewest", "(the empty one)"), (False, "states: 2, 1 in the smallest machine", "accept a")],
)
def test_a_net_needs_no_state_for_the_empty_string(answers_empty: bool, states: str, shortest: str) -> None:
    """Nets answer strings of one symbol or more, all of which this one accepts."""
    lines = Description(labeled_dfa(dfa_from_regex("(a|b)+")), answers_empty=answers_empty).lines()
    assert lines[0] == states
    assert any(line.startswith("shortest strings: ") and shortest in line for line in lines)


def test_facts_are_values() -> None:
    """The words with an even number of b: the monoid is the group of two elements, which is not aperiodic."""
    facts = Description(labeled_dfa(dfa_from_regex("(a|ba*b)*"))).facts()
    assert facts == {
        "states": 2,
        "fewest_states": 2,
        "symbols": ["a", "b"],
        "answers": ["reject", "accept"],
        "states_without_answer": 0,
        "shortest_strings": {"reject": ["b"], "accept": []},
        "answers_empty": True,
        "monoid": {"elements": 2, "group": True, "aperiodic": False, "commutative": True},
        "star_free": False,
        "accepted_length": 10,
        "accepted": 2**9,
    }


def test_facts_that_do_not_apply_are_none() -> None:
    """The maps of eight states: the symbols turn, swap and unite them, so that there are 8^8."""
    turn, swap, unite = [1, 2, 3, 4, 5, 6, 7, 0], [1, 0, 2, 3, 4, 5, 6, 7], [0, 0, 2, 3, 4, 5, 6, 7]
    machine = Semiautomaton(np.array([turn, swap, unite]).T, ("t", "s", "u"))
    described = Description(LabeledMachine(Transducer(machine, 0, np.array([IGNORE, *range(7)])), tuple("abcdefg")))
    facts = described.facts()
    assert (facts["monoid"], facts["star_free"], facts["accepted"]) == (None, None, None)
    assert facts["states_without_answer"] == 1
    lines = described.lines()
    assert "no answer: in 1 state" in lines
    assert lines[-1] == "transition monoid: more than 20,000 elements"
    assert described_monoid(None, 7) == "more than 7 elements"
