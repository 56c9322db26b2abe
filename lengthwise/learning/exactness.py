"""Tests whether a learned machine is the right machine, as far as the examples can show."""

from typing import Literal

import numpy as np

from lengthwise.automata.transducer import Transducer
from lengthwise.learning.description_length import description_length
from lengthwise.learning.prefix_tree import prefix_tree
from lengthwise.tasks.given.examples import Examples

Exactness = Literal["exact", "indistinguishable", "shorter", "wrong"]
"""The verdicts of `exactness`, best first."""


def agree_where_seen(machine: Transducer, target: Transducer, examples: Examples) -> bool:
    """Return whether two machines agree on all nonempty strings that take only seen transitions of the target.

    A transition of the target is seen if an example takes it. There are infinitely many strings of seen transitions. It
    is enough to compare the answers in each pair of states that the two machines reach together by such a string. There
    are finitely many pairs.

    Source: Hopcroft and Karp, "A linear algorithm for testing equivalence of finite automata" (1971).
    Differs from the source: sets of equivalent states are not merged, because only seen transitions count.

    Example: the two machines differ only after "b", which only the third string contains.
        >>> from lengthwise.automata.semiautomaton import Semiautomaton
        >>> from lengthwise.tasks.given.examples import Row, examples_from
        >>> one, other = (Semiautomaton(np.array([[1, b], [0, b]]), ("a", "b")) for b in (0, 1))
        >>> one, other = (Transducer(semiautomaton, 0, np.array([0, 1])) for semiautomaton in (one, other))
        >>> examples = examples_from([Row("a", ["1"], 1), Row("aa", ["0"], 2), Row("aab", ["0"], 3)], "last")
        >>> agree_where_seen(other, one, examples), agree_where_seen(other, one, examples.part(np.array([1, 1, 0]) > 0))
        (False, True)
    """
    table, other = target.semiautomaton.table, machine.semiautomaton.table
    tree = prefix_tree(examples)
    used = tree.are_used(tree.states(table, target.start), len(table))
    todo = [(target.start, machine.start)]
    reached = set(todo)
    while todo:
        state, learned = todo.pop()
        for v in np.flatnonzero(used[state]).tolist():
            pair = int(table[state, v]), int(other[learned, v])
            if target.outputs[pair[0]] != machine.outputs[pair[1]]:
                return False
            if pair not in reached:
                reached.add(pair)
                todo.append(pair)
    return True


def exactness(machine: Transducer, target: Transducer, examples: Examples) -> Exactness:
    """Return a verdict on whether a machine that was learned from these examples equals the target machine.

    "exact": the two machines agree on every string that takes only seen transitions of the target (`agree_where_seen`).
    "indistinguishable": they disagree on such a string, but give equal answers to all labeled prefixes, and the learned
    machine's description is not longer than the target's. Then no example separates the two machines, and nothing
    favors the target.
    "shorter": they answer some labeled prefixes differently, and the learned machine's description is shorter than the
    target's. A description includes the labels that its machine gets wrong. Wrong labels, or too few labels, can favor
    a machine other than the target. A search for the shortest description then cannot return the target.
    "wrong": all other cases.
    """
    if agree_where_seen(machine, target, examples):
        return "exact"
    tree = prefix_tree(examples)
    answers = [one.outputs[tree.states(one.semiautomaton.table, one.start)[tree.labeled]] for one in (machine, target)]
    lead = description_length(target, examples) - description_length(machine, examples)
    if np.array_equal(*answers):
        return "indistinguishable" if lead >= -1e-6 else "wrong"
    return "shorter" if lead > 0 else "wrong"
