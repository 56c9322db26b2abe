"""Machines as Elman networks, beyond the shared contract."""

import numpy as np
import pytest
import torch
from automaton_strategies import all_strings, checked_strategies, long_string, transducers
from hypothesis import given

from lengthwise.automata import Transducer, library
from lengthwise.constructions import construct
from lengthwise.conventions import IGNORE

pytestmark = checked_strategies


@given(transducers(max_states=5))
def test_the_unit_that_is_on_is_the_state_and_the_symbol(machine: Transducer) -> None:
    """Exactly one unit, whose number says which state read which symbol."""
    machine = Transducer(machine.semiautomaton, machine.start, np.where(machine.outputs < 0, IGNORE, machine.outputs))
    machine = machine.minimize()
    model, num_symbols = construct("rnn", machine).model, len(machine.symbols)
    for string in all_strings(num_symbols, 4):
        state, before = model.initial_state(1), machine.start
        for symbol in string.tolist():
            _, state = model.step(torch.tensor([symbol]), state)
            assert state.nonzero()[:, 1].tolist() == [before * num_symbols + symbol]
            assert state.sum() == 1
            before = int(machine.semiautomaton.table[before, symbol])


@torch.no_grad()
@pytest.mark.parametrize("depth", [2, 3, 4, 12])
def test_is_right_at_every_position_of_a_long_string(depth: int) -> None:
    machine = library.bounded_dyck(depth).transducer
    string = long_string(machine, 20_000, seed=depth)[None]
    expected = machine.run(string)
    assert len(np.unique(expected)) == 2
    answers = construct("rnn", machine).model(torch.from_numpy(string)).argmax(-1).numpy()
    np.testing.assert_array_equal(answers, expected)


def test_size_is_what_the_docstring_says() -> None:
    model = construct("rnn", library.modular_arithmetic(5)).model
    num_states = library.modular_arithmetic(5).minimize().num_states
    assert model.config.d_model == num_states * 8 + 1
