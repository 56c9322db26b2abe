"""Sampling strings of a given length that lead from a state into a set of states, uniformly or with weights."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float64, Int64

from lengthwise.automata.semiautomaton import Semiautomaton

MAX_ELEMENTS = 2 * 10**8
"""The largest number of floats that a sampler keeps: 1.6 GB."""


@dataclass(frozen=True, eq=False)
class StringSampler:
    """A sampler of the strings of a given length that lead from one of several starts into `targets`.

    The probability of a string is proportional to the product of the weights of its transitions. If all weights are 1,
    draws are uniform. Let N_r(q) be the sum of these products over all strings of length r that lead from state q into
    `targets`. With r symbols left, state q continues with symbol v with probability
    ``weights[q, v] N_(r-1)(table[q, v]) / N_r(q)``.

    The sums are stored as mantissa and exponent for each state, so they do not overflow or vanish at any length.
    Strings that do not lead into `targets` are never drawn. Probabilities are exact to double precision.

    The probabilities for r symbols left are also used for all longer strings. Probabilities are computed when first
    needed, and stored. They take one float for each state and each symbol except the last, for every r up to the
    longest length so far.
    """

    semiautomaton: Semiautomaton
    starts: Int64[np.ndarray, " S"]
    targets: Bool[np.ndarray, " Q"]
    weights: Float64[np.ndarray, "Q V"]
    _thresholds: list[Float64[np.ndarray, "Q W"]] = field(default_factory=list, init=False, repr=False)
    _possible: list[Bool[np.ndarray, " S"]] = field(default_factory=list, init=False, repr=False)
    _sums: list[np.ndarray] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self.semiautomaton.check_labels(self.targets, "targets")
        for start in self.starts.tolist():
            self.semiautomaton.check_state(start, "starts")
        if not (self.weights > 0).all():
            raise ValueError(
                f"weights: expected positive numbers, got {self.weights.min()}; raise every weight above 0"
            )
        self._sums.extend(np.frexp(self.targets.astype(np.float64)))
        self._possible.append(self.targets[self.starts])

    @property
    def longest(self) -> int:
        """Return the largest length of strings whose probabilities take at most `MAX_ELEMENTS` floats."""
        return MAX_ELEMENTS // max(1, self.weights[:, 1:].size)

    def possible(self, length: int) -> Bool[np.ndarray, " S"]:
        """Return for each start whether any string of this length leads from the start into the targets.

        Raises:
            ValueError: the sampler would have to store more than 200,000,000 floats for this length.
        """
        if length > self.longest:
            raise ValueError(
                f"length: expected at most {self.longest:,} for {len(self.weights):,} states and an alphabet of "
                f"{self.semiautomaton.num_symbols} symbols, got {length:,}; draw shorter strings"
            )
        while len(self._thresholds) < length:
            self._prepare_next_length()
        return self._possible[length]

    def _prepare_next_length(self) -> None:
        mantissas, exponents = (part[self.semiautomaton.table] for part in self._sums)
        # A sum of 0 has exponent 0, which must not determine the scale of a state if other sums have other exponents.
        scale = np.where(mantissas > 0, exponents, np.iinfo(exponents.dtype).min // 2).max(axis=1, keepdims=True)
        shares = np.ldexp(mantissas, np.where(mantissas > 0, exponents - scale, 0)) * self.weights
        shares = shares.cumsum(axis=1)
        total = shares[:, -1]
        alive = total > 0
        # A symbol from which no string leads into the targets has equal thresholds on both sides (0 if it is the first
        # symbol, exactly 1 if it is the last). Draws in [0, 1) cannot fall between these, so this symbol is impossible
        # despite rounding.
        self._thresholds.append(shares[:, :-1] / np.where(alive, total, 1.0)[:, None])
        self._possible.append(alive[self.starts])
        mantissas, exponents = np.frexp(total)
        self._sums[:] = mantissas, np.where(alive, exponents + scale[:, 0], 0)

    def sample(self, uniforms: Float64[np.ndarray, "B T"], choice: Int64[np.ndarray, " B"]) -> Int64[np.ndarray, "B T"]:
        """Return a string of T symbols for each of the B rows of `uniforms`.

        String b leads from state ``starts[choice[b]]`` into the targets.

        The `uniforms` are random numbers in [0, 1), and the only source of randomness.

        Raises:
            ValueError: no string of length T leads from a chosen start into the targets.
        """
        length = uniforms.shape[1]
        impossible = ~self.possible(length)[choice]
        if impossible.any():
            raise ValueError(
                f"uniforms: expected a number of columns at which start {choice[impossible][0]} has strings that lead "
                f"into the targets, got {length} columns; choose a length with strings (for a DFA, count(length) > 0)"
            )
        num_symbols = self.semiautomaton.num_symbols
        table = self.semiautomaton.table.ravel()
        state = self.starts[choice]
        # The position is the first axis, so that each step writes contiguous memory.
        strings = np.empty((length, len(uniforms)), dtype=np.int64)
        for position, draws in enumerate(np.ascontiguousarray(uniforms.T)):
            thresholds = self._thresholds[length - 1 - position]
            if num_symbols == 2:
                symbol = (draws >= thresholds.ravel()[state]).astype(np.int64)
            else:
                symbol = (draws[:, None] >= thresholds[state]).sum(axis=1)
            strings[position] = symbol
            state = table[state * num_symbols + symbol]
        return strings.T
