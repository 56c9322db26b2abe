"""Results of a search that did not train: its net is compiled from a machine that is given, such as `last_digit`."""

import numpy as np

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.constructions import construct
from lengthwise.learning.learned import Learned
from lengthwise.learning.search import Attempt, SearchResult, count_errors
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.studies.ours.experiments.learning import Pairs, Size, examples_of, same_machine
from lengthwise.tasks.given.examples import Examples


def as_if_searched(machine: Transducer, examples: Examples) -> SearchResult:
    """Return the result of a search that ends with this machine."""
    model = construct("block-linear-rnn", machine).model
    assert isinstance(model, BlockLinearRNN)
    num_errors = count_errors(machine, examples)
    attempt = Attempt(8, 0, machine.num_states, num_errors, 1.0, 0.0)
    return SearchResult(model, machine, attempt, (attempt,), 1)


def last_digit(*others: str) -> Transducer:
    """Return the machine whose answer is the last digit, 0 or 1; other symbols leave its state as it is."""
    table = [[0, 1, *(state for _ in others)] for state in (0, 1)]
    return Transducer(Semiautomaton(np.array(table), ("0", "1", *others)), 0, np.array([0, 1]))


def pairs_of(machine: Transducer, count: int, longest: int, seed: int = 0, share_wrong: float = 0.0) -> Pairs:
    """Return labeled strings of a machine, of up to `longest` symbols."""
    return examples_of(machine, Size(examples=count, longest=longest), seed, share_wrong)


def same(learned: Learned, machine: Transducer) -> bool:
    """Return whether both give the same answers to all nonempty strings; classes are in alphabetical order in both."""
    return same_machine(learned.machine, machine)
