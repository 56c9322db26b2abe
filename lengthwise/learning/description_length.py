r"""The total description length of a machine and of the labels that it gets wrong, in bits.

A message describes the machine and then the labels. The receiver knows the strings, the symbols and the classes. The
message has this length:

    total = machine + labels
    machine = 2 log2(n + 1) + n log2 Y + targets - log2((n - 1)!)
    labels  = log2(N + 1) + log2(N choose e) + e log2(Y - 1)

for n states, Y classes, N labels and e labels that the machine gets wrong. Here `targets` is the number of bits that
name the states to which transitions lead.

- The message contains targets only for transitions that the examples take. The receiver can infer which transitions
  these are, because each target is named when a string first needs it. Other transitions cost nothing, because no label
  depends on them.
- The targets are named one after another by the adaptive code of Krichevsky and Trofimov. If k targets were named
  before, and m of them equal the next target, the next target costs -log2((m + 1/2) / (k + n / 2)) bits. So a state to
  which many transitions lead is cheap to name. An example is the rejecting state of a protocol.
- The states other than the start can be numbered in (n - 1)! ways, and all of these describe the same machine.
- With the noise rate p = e / N, log2(N choose e) is about N h(p) bits, where h is the binary entropy. The number e
  itself costs log2(N + 1) bits.

If a machine is wrong on at least as many labels as random guesses would be on average, each label costs log2 Y bits.

Source: Rissanen, "Modeling by shortest data description" (Automatica, 1978); Krichevsky and Trofimov, "The performance
    of universal encoding" (1981).
"""

import math

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.transducer import Transducer
from lengthwise.learning.prefix_tree import PrefixTree, prefix_tree
from lengthwise.tasks.given.examples import Examples

LOG_2 = math.log(2)


def machine_bits(num_states: int, num_classes: int, in_degrees: Int64[np.ndarray, " S"]) -> float:
    """Return the number of bits that describe a machine; `in_degrees` counts the used transitions into each state."""
    total, n = int(in_degrees.sum()), num_states
    targets = math.lgamma(total + n / 2) - math.lgamma(n / 2)
    targets -= sum(math.lgamma(count + 0.5) - math.lgamma(0.5) for count in in_degrees.tolist() if count)
    return 2 * math.log2(n + 1) + n * math.log2(num_classes) + (targets - math.lgamma(n)) / LOG_2


def label_bits(num_errors: int, num_labels: int, num_classes: int) -> float:
    """Return the number of bits that describe the labels, given a machine that gets `num_errors` of them wrong."""
    if num_errors >= num_labels * (1 - 1 / num_classes):
        return num_labels * math.log2(num_classes)
    which = math.lgamma(num_labels + 1) - math.lgamma(num_errors + 1) - math.lgamma(num_labels - num_errors + 1)
    return math.log2(num_labels + 1) + which / LOG_2 + num_errors * math.log2(max(1, num_classes - 1))


def in_degrees(
    table: Int64[np.ndarray, "S V"], used: Bool[np.ndarray, "S V"], num_states: int
) -> Int64[np.ndarray, " S"]:
    """Return, for each state, the number of transitions in the mask `used` that lead to this state."""
    return np.bincount(table[used], minlength=num_states)


def description_length(machine: Transducer, examples: Examples, num_errors: int | None = None) -> float:
    """Return the total description length of a machine and the examples' labels, in bits.

    States that no example reaches are left out. If `num_errors` is not given, the wrong labels are counted.
    """
    tree = prefix_tree(examples)
    table = machine.semiautomaton.table
    states = tree.states(table, machine.start)
    degrees = in_degrees(table, tree.are_used(states, len(table)), len(table))
    if num_errors is None:
        num_errors = int((machine.outputs[states[tree.labeled]] != tree.labels).sum())
    num_states = len(np.unique(states))
    return machine_bits(num_states, tree.num_classes, degrees) + label_bits(
        num_errors, len(tree.labels), tree.num_classes
    )


def constant_description_length(examples: Examples) -> float:
    """Return the description length of the machine of one state that always gives the most frequent answer."""
    tree: PrefixTree = prefix_tree(examples)
    num_errors = len(tree.labels) - int(np.bincount(tree.labels).max())
    degrees = np.array([len(np.unique(tree.symbols[1:]))])
    return machine_bits(1, tree.num_classes, degrees) + label_bits(num_errors, len(tree.labels), tree.num_classes)
