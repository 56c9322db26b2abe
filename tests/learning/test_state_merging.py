"""State merging and repair against their definitions, description lengths, and when a machine is right."""

import math
import time

import numpy as np
import pytest

from lengthwise import learn
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.learning.description_length import constant_description_length, description_length
from lengthwise.learning.exactness import agree_where_seen, exactness
from lengthwise.learning.merging_search import do_symbols_depend, merged_machines, unseen_transitions
from lengthwise.learning.prefix_tree import prefix_tree
from lengthwise.learning.repair import Repair
from lengthwise.learning.search import search
from lengthwise.learning.state_merging import Hypothesis, completed, gain_by_definition, merge_states, partial_table
from lengthwise.report.tables.learned import learned_lines
from lengthwise.studies.ours.experiments.state_merging import (
    drawn_machine,
    drawn_protocol,
    drawn_strings,
    drawn_traces,
    labeled,
)
from lengthwise.tasks.given.reading import read_examples

pytestmark = pytest.mark.usefixtures("fewer_strings")


def examples_of(machine: Transducer, count: int, share: float = 0.0, *, prefixes: bool = False):
    return labeled(machine, drawn_strings(machine, count, 0, 12), share, 0, prefixes=prefixes)


@pytest.mark.parametrize("prefixes", [False, True])
@pytest.mark.parametrize("with_symbols", [False, True])
def test_gains_are_those_of_folded_copies(prefixes: bool, with_symbols: bool) -> None:
    """Also when states are red already, so that folds run in loops and meet themselves."""
    tree = prefix_tree(examples_of(drawn_machine(1), 80, 0.1, prefixes=prefixes))
    hypothesis = Hypothesis(tree, 0.05, with_symbols)
    checked = 0
    for _ in range(12):
        blue = hypothesis.blue()
        if not blue:
            break
        blues, reds = np.array([*blue]), np.array(hypothesis.red)
        gains = hypothesis.gains(blues, reds)
        for row, one in enumerate(blues.tolist()):
            for column, red in enumerate(reds.tolist()):
                expected = gain_by_definition(hypothesis, one, red)
                assert gains[row, column] == pytest.approx(expected, abs=1e-6)
                checked += 1
        row, column = np.unravel_index(int(gains.argmax()), gains.shape)
        one = int(blues[row])
        if len(reds) < 3:
            hypothesis.promote(one)
        else:
            hypothesis.fold(*blue[one], one, int(reds[column]))
    assert checked > 50


def test_rates_of_moves_are_exact_where_a_transition_is_taken_once() -> None:
    tree = prefix_tree(examples_of(drawn_machine(2), 200, 0.05))
    search_ = Repair(tree)
    # States that are levels of the tree: no string takes a transition twice.
    levels = len(tree.bounds) - 1
    table = np.minimum(np.arange(levels)[:, None] + 1, levels - 1).repeat(tree.num_symbols, 1)
    fitted = search_.fit(table)
    before = search_.label_bits_from(fitted)
    rates, _ = search_.rates(fitted)
    for edge, target in ((0, 2), (1, 3), (tree.num_symbols, 4)):
        moved = table.copy()
        moved.ravel()[edge] = target
        after = search_.label_bits_from(fitted._replace(table=moved))
        assert after[0, 0] - before[0, 0] == pytest.approx(rates[edge, target], abs=0.05)


@pytest.mark.parametrize(("share", "prefixes"), [(0.0, False), (0.05, False), (0.0, True), (0.05, True)])
def test_random_machines_are_found_in_seconds(share: float, prefixes: bool) -> None:
    machine = drawn_machine(0)
    strings = drawn_strings(machine, 400 if prefixes else 1_000, 0)
    examples = labeled(machine, strings, share, 0, prefixes=prefixes)
    result = search(examples, budget=20.0, seed=0)
    assert exactness(result.machine, machine, examples) == "exact"
    assert all(attempt.method != "net" for attempt in result.attempts)
    assert result.runner_up is not None
    assert result.runner_up.num_bits > result.best.num_bits


def test_a_protocol_is_told_by_its_symbols() -> None:
    protocol = drawn_protocol(3)
    examples = labeled(protocol, drawn_traces(protocol, 400, 0), 0.03, 0, prefixes=False)
    assert do_symbols_depend(prefix_tree(examples))
    assert not do_symbols_depend(prefix_tree(examples_of(drawn_machine(0), 500)))
    merged = next(merged_machines(examples, budget=0.0)).machine
    assert description_length(merged, examples) < 0.9 * constant_description_length(examples)
    assert merged.num_states <= protocol.num_states + 2


def test_classes_of_any_number_are_merged() -> None:
    """The number of b modulo 4, with a label at the end."""
    rows = [
        (f"{number:b}".replace("0", "a").replace("1", "b"), str(f"{number:b}".count("1") % 4))
        for number in range(1, 600)
    ]
    result = search(read_examples(rows), budget=0.0, seed=0)
    assert (result.best.num_states, result.best.num_errors, result.best.method[:13]) == (4, 0, "states merged")


def test_missing_transitions_lead_where_the_symbol_mostly_leads() -> None:
    table = np.array([[1, 2, -1], [-1, 2, -1], [1, -1, -1]])
    assert completed(table).tolist() == [[1, 2, 0], [1, 2, 1], [1, 2, 2]]
    examples = read_examples([("ab", "x"), ("a", "y"), ("b", "x")])
    machine = Transducer(Semiautomaton(np.array([[1, 0], [1, 0]]), ("a", "b")), 0, np.array([0, 1]))
    assert unseen_transitions(machine, examples) == [(1, "a")]


def test_a_state_may_be_passed_more_often_than_there_are_strings() -> None:
    """All symbols of these strings merge into two states, whose counts are the lengths of all strings together."""
    tree = prefix_tree(read_examples([("ab" * n, "no" if n % 7 else "yes") for n in range(33, 240)]))
    hypothesis = merge_states(tree, 0.2, with_symbols=True, max_states=5, deadline=math.inf)
    assert max(hypothesis.counts[hypothesis.red, hypothesis.num_classes :].sum(1)) > 64 * int(tree.visits[0])


def test_a_description_names_machine_and_wrong_labels() -> None:
    rows = [("a", "x"), ("b", "y"), ("ab", "y"), ("ba", "x"), ("aa", "x"), ("bb", "x")]
    examples = read_examples(rows)
    last = Transducer(Semiautomaton(np.array([[0, 1], [0, 1]]), ("a", "b")), 0, np.array([0, 1]))
    # Targets 0, 0, 1, 1 of four transitions by the adaptive code: 1/2 and 1/4 and 3/8 and so on, in any order.
    targets = -math.log2((0.5 / 1) * (1.5 / 2) * (0.5 / 3) * (1.5 / 4))
    machine = 2 * math.log2(3) + 2 + targets
    assert description_length(last, examples) == pytest.approx(machine + math.log2(7) + math.log2(6))


def test_machines_are_compared_where_examples_lead() -> None:
    examples = read_examples([("a", "no"), ("aa", "yes"), ("ab", "no"), ("aba", "yes")])
    target = Transducer(Semiautomaton(np.array([[1, 2], [0, 1], [2, 2]]), ("a", "b")), 0, np.array([1, 0, 0]))
    other = Transducer(Semiautomaton(np.array([[1, 0], [0, 1]]), ("a", "b")), 0, np.array([1, 0]))
    assert agree_where_seen(other, target, examples)  # no example begins with b
    assert exactness(other, target, examples) == "exact"
    always = Transducer(Semiautomaton(np.array([[0, 0]]), ("a", "b")), 0, np.array([1]))
    # Two labels that it gets wrong take fewer bits than the two states that the target has more.
    assert exactness(always, target, examples) == "shorter"
    never = Transducer(Semiautomaton(np.array([[0, 0]]), ("a", "b")), 0, np.array([0]))
    repeated = read_examples([("b", "no"), *(("a" * n, "yes" if n % 2 == 0 else "no") for n in range(1, 60))])
    assert exactness(never, target, repeated) == "wrong"
    swapped = Transducer(Semiautomaton(np.array([[1, 0], [0, 0]]), ("a", "b")), 0, np.array([1, 0]))
    assert not agree_where_seen(swapped, target, examples)


def test_merging_ends_at_the_deadline_and_at_the_largest_number_of_states() -> None:
    tree = prefix_tree(examples_of(drawn_machine(3), 300, 0.3))
    for states, deadline in ((4, math.inf), (40, time.process_time())):
        hypothesis = merge_states(tree, 0.001, max_states=states, deadline=deadline)
        assert not hypothesis.blue()
        assert len(hypothesis.red) <= (states if deadline == math.inf else 1)
        assert partial_table(hypothesis).max() < len(hypothesis.red)


def test_learn_names_the_chosen_machine_and_the_runner_up() -> None:
    strings = [f"{number:b}" for number in range(1, 600)]
    learned = learn([(text, "yes" if int(text, 2) % 5 == 0 else "no") for text in strings])
    lines = dict(learned_lines(learned))
    assert lines["chosen"].startswith("states merged at noise 0.1%, description of ")
    assert "; runner-up: the most frequent answer, 1 state, " in lines["chosen"]
    assert lines["wrong labels"] == "about 0 % of the training labels, according to this machine"
    assert learned.certificate.level == "proved"
