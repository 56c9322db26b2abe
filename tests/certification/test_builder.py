"""What of an extraction has to be proved, given its task."""

import numpy as np
import pytest
import torch
from automaton_strategies import all_strings, checked_strategies, transducers
from hypothesis import given

from lengthwise.automata import Transducer
from lengthwise.certification.builder import mask_unsupervised
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction

pytestmark = [checked_strategies, pytest.mark.unchecked]


def extraction_of(fine: Transducer) -> Extraction:
    return Extraction(fine.minimize(), fine, np.zeros(fine.num_states, int), torch.zeros(0, 1), 0, 0.0, 0.0, 0)


@given(transducers(symbols=("a", "b"), max_states=3), transducers(symbols=("a", "b"), max_states=3))
def test_outputs_are_needed_where_some_string_is_supervised(drawn: Transducer, partner: Transducer) -> None:
    """By trying all strings up to the number of pairs of states."""
    supervised = np.where(partner.outputs == partner.outputs.min(), IGNORE, 0)
    task = Transducer(partner.semiautomaton, partner.start, supervised)
    fine = Transducer(drawn.semiautomaton, drawn.start, np.arange(drawn.num_states))
    needed = set()
    for length in range(1, fine.num_states * task.num_states + 1):
        strings = all_strings(2, length)
        states = fine.semiautomaton.final_states(strings, fine.start)
        needed |= set(states[task.run(strings)[:, -1] != IGNORE].tolist())
    reduced = mask_unsupervised(extraction_of(fine), task).fine
    assert set(np.flatnonzero(reduced.outputs != IGNORE).tolist()) == needed
    assert all(reduced.outputs[state] == fine.outputs[state] for state in needed)
