"""L* on machines that are known, with the exact comparison as its teacher."""

import numpy as np
import pytest
from automaton_strategies import checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import Transducer
from lengthwise.automata.conformance import extended_strings
from lengthwise.automata.lstar import Hypothesis, String, learn_by_lstar

pytestmark = checked_strategies


def learned(machine: Transducer, **options: int) -> Transducer:
    """Learn a Moore machine, where counterexamples come from the exact comparison."""

    def query(string: String) -> int:
        state = machine.start
        for symbol in string:
            state = int(machine.semiautomaton.table[state, symbol])
        return int(machine.outputs[state])

    def wrong_string(hypothesis: Hypothesis) -> String | None:
        wrong = hypothesis.transducer(machine.symbols).difference_string(machine)
        return None if wrong is None else tuple(map(machine.symbols.index, wrong))

    smallest = learn_by_lstar(len(machine.symbols), "Moore", query, wrong_string, **options)
    return smallest.transducer(machine.symbols)


@given(transducers())
def test_the_smallest_machine_is_learned(machine: Transducer) -> None:
    result, smallest = learned(machine), machine.minimize()
    assert result.equivalent(machine)
    assert result.num_states == smallest.num_states
    assert learned(machine, max_states=smallest.num_states).equivalent(machine)
    if smallest.num_states > 1:
        with pytest.raises(ValueError, match=r"max_states: expected at least [0-9]+, because the answers"):
            learned(machine, max_states=smallest.num_states - 1)


def answers_of(machine: Transducer, queried: set[tuple[int, ...]]):
    def answer(string: tuple[int, ...]) -> int:
        queried.add(string)
        state = machine.semiautomaton.final_states(np.array([string], dtype=np.int64), machine.start)[0]
        return int(machine.outputs[state])

    return answer


@given(transducers(), st.integers(0, 30))
def test_the_smallest_machine_is_learned_from_few_queries(machine: Transducer, extra: int) -> None:
    """Counterexamples are longer than need be; Rivest and Schapire bound the number of suffixes by that of states."""
    queried: set[tuple[int, ...]] = set()
    sizes = []

    def counterexample(learned: Hypothesis) -> tuple[int, ...] | None:
        hypothesis = learned.transducer(machine.symbols)
        sizes.append(hypothesis.num_states)
        string = hypothesis.difference_string(machine)
        if string is None:
            return None
        ids = tuple(machine.symbols.index(symbol) for symbol in string)
        longer = ids + (0,) * extra
        answers = [one.run(np.array([longer]))[0, -1] for one in (hypothesis, machine)] if longer else [0, 0]
        return longer if answers[0] != answers[1] else ids

    query = answers_of(machine, queried)
    learned = learn_by_lstar(len(machine.symbols), "Moore", query, counterexample).transducer(machine.symbols)
    smallest = machine.minimize()
    assert learned.equivalent(machine)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == learned.num_states == smallest.num_states
    size, num_symbols = smallest.num_states, len(machine.symbols)
    steps = int(np.ceil(np.log2(size * size + extra + 2))) + 2
    assert len(queried) <= (size * num_symbols + 1) * size + size * steps


def outputs_along(machine: tuple[int, ...], string: String) -> list[int]:
    """The outputs of a Mealy machine of two symbols and outputs, whose code has 2 q' + y for each state and symbol."""
    state, outputs = 0, []
    for symbol in string:
        state, output = divmod(machine[2 * state + symbol], 2)
        outputs.append(output)
    return outputs


def all_machines(num_states: int) -> list[tuple[int, ...]]:
    return list(map(tuple, np.ndindex(*(2 * num_states,) * (2 * num_states))))


@pytest.mark.parametrize(("num_states", "num_extra"), [(1, 0), (1, 1), (2, 0)])
def test_strings_of_the_w_method_separate_every_other_machine(num_states: int, num_extra: int) -> None:
    """All machines up to the bound are tried. Strings of 2 Q - 1 symbols decide whether two of them are equivalent."""
    others = all_machines(num_states + num_extra)
    long = list(map(tuple, np.ndindex(2, 2, 2)))
    for machine in all_machines(num_states)[::7]:
        expected = [outputs_along(machine, string) for string in long]
        access = [(), next(((a,) for a in (0, 1) if machine[a] >= 2), None)][:num_states]
        rows = [machine[2 * state : 2 * state + 2] for state in range(num_states)]
        outputs = [tuple(code % 2 for code in row) for row in rows]
        if None in access or len(set(outputs)) < num_states:
            continue  # not all states are reached, or no suffix of one symbol separates them
        suffixes = [(next(a for a in (0, 1) if outputs[0][a] != outputs[1][a]),)] if num_states == 2 else [()]
        strings = [s for n in range(num_extra + 2) for s in extended_strings(access, suffixes, 2, n)]
        for other in others:
            if all(outputs_along(other, string) == outputs_along(machine, string) for string in strings):
                assert [outputs_along(other, string) for string in long] == expected, (machine, other)
