"""A linear RNN that reads only its own output, as plain arrays: real, complex, or exact rationals."""

from typing import Any, NamedTuple

import numpy as np

from lengthwise.conventions import Tie
from lengthwise.validation import check_sizes, whole_number

Array = np.ndarray[Any, np.dtype[Any]]

MAX_COUNT = 1_000_000_000
"""The largest number of states or symbols that are computed at once; more do not fit into memory."""


class LinearGenerator(NamedTuple):
    """The RNN h_i = W_h h_{i-1} + W_x x_i, y_i = Re(W_y h_i) + b_y; x_{i+1} is the symbol of the largest logit.

    For dimension d and n symbols, `hidden` is W_h [d, d], `readout` is W_y [n, d], and `bias` is b_y [n]. `first` is
    h_1 [d], the state after the start symbol, from which the first symbol is read out. `inputs` is W_x [d, n], or None
    if W_x is 0 and states do not depend on the output. Arrays contain floats, complex numbers, or objects such as
    fractions and integers.

    Example:
        >>> one, two = np.ones(1), np.zeros(2)
        >>> LinearGenerator(-np.eye(1), np.array([[1], [-1]]), two, one, ("a", "b")).generate(5)
        'ababa'

    Source: "update on rnn memorization" (20 November 2023), its definition.
    Differs from the source: h_1 is given, as the note assumes; logits are the real parts of complex numbers; ties are
        errors.
    """

    hidden: Array
    readout: Array
    bias: Array
    first: Array
    symbols: tuple[str, ...]
    inputs: Array | None = None

    @property
    def dimension(self) -> int:
        """Return d, the length of the state."""
        return len(self.first)

    def states(self, count: int) -> Array:
        """Return the states h_1 ... h_count in the number type of the arrays; raise a ValueError unless W_x = 0."""
        if self.inputs is not None:
            raise ValueError("inputs: expected a generator without W_x, got W_x; call generate instead")
        count = whole_number("count", count, 0, MAX_COUNT)
        states = np.empty((count, self.dimension), np.result_type(self.hidden, self.first))
        state = self.first
        for i in range(count):
            states[i] = state
            state = self.hidden @ state
        return states

    def logits(self, states: Array) -> Array:
        """Return the logits y of each state."""
        read = states @ self.readout.T
        return (read.real if np.iscomplexobj(read) else read) + self.bias

    def generate(self, count: int) -> str:
        """Return the first `count` symbols that the generator generates.

        Raises:
            ValueError: `count` is not in 0 ... `MAX_COUNT`.
            Tie: two logits are equal, or one is not a number.
        """
        count = whole_number("count", count, 0, MAX_COUNT)
        if self.inputs is None:
            return "".join(self.symbols[best] for best in strict_argmax(self.logits(self.states(count))))
        state, output = self.first, []
        for _ in range(count):
            (best,) = strict_argmax(self.logits(state[None]))
            output.append(self.symbols[best])
            state = self.hidden @ state + self.inputs[:, best]
        return "".join(output)

    def margin(self, count: int) -> float:
        """Return the smallest distance from one of the first `count` states to another symbol's region.

        Let w_s be row s of W_y. The distance from a state with symbol s and logits y to the region of symbol j is
        (y_s - y_j) / |w_s - w_j|. The unit of the distance is the largest norm of the states. For dimension 0, the
        result is inf.
        """
        check_sizes(count=count)
        if not self.dimension:
            return float("inf")
        states = self.states(count)
        logits = self.logits(states)
        best = strict_argmax(logits)
        separations = np.linalg.norm((self.readout[:, None] - self.readout).astype(complex), axis=2)
        others = np.arange(len(self.symbols)) != best[:, None]
        gaps = (logits[np.arange(count), best][:, None] - logits).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = np.where(others, gaps / separations[best], np.inf)
        return float(distances.min() / np.linalg.norm(states.astype(complex), axis=1).max())


def strict_argmax(logits: Array) -> Array:
    """Return the index of the largest logit of each row; raise Tie if the largest logit is tied or is not a number."""
    best: Array = np.argmax(logits, axis=1)
    if logits.shape[1] > 1:
        largest = logits[np.arange(len(logits)), best][:, None]
        # A NaN is not less than any number, so it counts as a tie.
        is_strict = (logits < largest).sum(1) == logits.shape[1] - 1
        if not is_strict.all():
            step = int(np.argmin(is_strict))
            raise Tie(f"step {step + 1}: expected one largest logit, got {logits[step].tolist()}; change the weights")
    return best
