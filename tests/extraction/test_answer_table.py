"""Machines from answers to short strings, compared with the machine of the net."""

import pytest
from automaton_strategies import checked_strategies, transducers
from hypothesis import given, settings
from slow_nets import slow_net

from lengthwise.automata.transducer import Transducer
from lengthwise.extraction.answer_table import machine_of_answers
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.models.machine import TransducerModel

pytestmark = checked_strategies


@pytest.mark.unchecked
@given(transducers(symbols=("a", "b"), max_states=4))
@settings(max_examples=15)
def test_the_answers_of_a_small_machine_determine_it(machine: Transducer) -> None:
    outputs = machine.outputs - machine.outputs.min()
    there = Transducer(machine.semiautomaton, machine.start, outputs)
    net = TransducerModel(there, [str(answer) for answer in range(int(outputs.max()) + 1)])
    # Four states, and the start, are reached and distinguished by strings of at most four symbols.
    assert machine_of_answers(net, ("a", "b"), 10).to_json() == there.minimize_nonempty().to_json()


def test_a_machine_with_states_beyond_short_strings_is_rejected() -> None:
    with pytest.raises(NotFinite, match="its answers to strings of up to 10 symbols do not show a finite machine"):
        machine_of_answers(slow_net("rnn", 6), ("a", "b"), 10)
