"""States of a net that reads its own answers, on the cycle of a word, and the net that says the word from them."""

import numpy as np

from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.separation import read_out
from lengthwise.constructions.memorization.words import Word

NUM_PERIODS = 50
"""For how many periods a net has to say its word, in float64, to be returned."""


class Undecided(RuntimeError):
    """Neither a net nor a proof that there is none was found."""


def cycle_states(hidden: np.ndarray, added: np.ndarray, word: Word) -> np.ndarray:
    """The states before each answer when the word is written without end: those of one period solve (1 - W_h^p) h."""
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
    """The net of these states on the cycle, by a linear program; None where it finds none that says the word.

    `added` is the column of W_x of the second symbol; that of the first is 0.
    """
    try:
        readout = read_out(word.letters, states)
    except RuntimeError:  # margins as small as rounding
        return None
    if readout is None:
        return None
    inputs = np.stack([np.zeros(len(hidden)), added], 1)
    net = LinearGenerator(hidden, readout.weights, readout.bias, states[0], word.symbols, inputs)
    return net if net.generate(NUM_PERIODS * word.period) == NUM_PERIODS * word.text else None
