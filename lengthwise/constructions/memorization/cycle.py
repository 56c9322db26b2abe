"""The states through which a net cycles if it reads its own answers, and the net with a read-out from these states."""

import numpy as np

from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.separation import read_out
from lengthwise.constructions.memorization.words import Word

NUM_PERIODS = 50
"""The number of periods for which a net must generate its word in float64."""


class Undecided(RuntimeError):
    """An error that is raised if a search finds neither a net nor a proof that no net exists."""


def cycle_states(hidden: np.ndarray, added: np.ndarray, word: Word) -> np.ndarray:
    """Return the state before each letter of an endlessly repeated word.

    Here W_h is `hidden`. One period of p letters maps a state h to W_h^p h plus a vector that does not depend on h. The
    first state is the h that is mapped to itself. `added` is the column of W_x for the second symbol; the first
    symbol's column is 0.
    """
    period = word.period
    power, total = np.eye(len(hidden)), np.zeros(len(hidden))
    for k in range(period):
        total += power @ added * int(word.letters[(-1 - k) % period])
        power = power @ hidden
    state, states = np.linalg.solve(np.eye(len(hidden)) - power, total), []
    for letter in word.letters:
        states.append(state)
        state = hidden @ state + added * int(letter)
    return np.stack(states)


def net_of(word: Word, hidden: np.ndarray, added: np.ndarray, states: np.ndarray) -> LinearGenerator | None:
    """Return the net with these states on its cycle and a read-out from a linear program.

    The result is None if the program finds no read-out, or if the net does not generate the word. `added` is the column
    of W_x for the second symbol; the first symbol's column is 0.
    """
    try:
        readout = read_out(word.letters, states)
    except RuntimeError:  # the margins are as small as rounding
        return None
    if readout is None:
        return None
    inputs = np.stack([np.zeros(len(hidden)), added], 1)
    net = LinearGenerator(hidden, readout.weights, readout.bias, states[0], word.symbols, inputs)
    return net if net.generate(NUM_PERIODS * word.period) == NUM_PERIODS * word.text else None
