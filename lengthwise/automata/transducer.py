"""Moore machines: finite-state transducers that answer every prefix of a string."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.drawing import MAX_DRAWN, machine_svg
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.conventions import IGNORE
from lengthwise.validation import check_kind


@dataclass(frozen=True, eq=False)
class Transducer:
    """A Moore machine: the answer to a prefix is ``outputs[q]``, where q is the state reached after reading it.

    Outputs are class ids, and `IGNORE` (of `lengthwise.conventions`) in states that ask nothing.

    Raises:
        ValueError: `start` is no state, or there is not one output per state.

    Example:
        >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
        >>> Transducer(flip, 0, np.array([0, 1])).run(np.array([[1, 0, 1, 1]]))
        array([[1, 1, 0, 1]])
    """

    semiautomaton: Semiautomaton
    start: int
    outputs: Int64[np.ndarray, " Q"]

    def __post_init__(self) -> None:
        outputs = np.array(self.outputs)
        if outputs.dtype.kind not in "biu":
            raise ValueError(f"outputs: expected numbers of answers, got {outputs.dtype}; number them from 0")
        outputs = outputs.astype(np.int64)
        check_kind("semiautomaton", self.semiautomaton, Semiautomaton, "a Semiautomaton")
        self.semiautomaton.check_state(self.start)
        self.semiautomaton.check_labels(outputs, "outputs")
        outputs.setflags(write=False)
        object.__setattr__(self, "outputs", outputs)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols it reads, in the order of their ids."""
        return self.semiautomaton.symbols

    @property
    def num_states(self) -> int:
        """Number of states, Q."""
        return self.semiautomaton.num_states

    def _repr_svg_(self) -> str | None:
        """A drawing, for notebooks; None where there are too many states for one."""
        if self.num_states > MAX_DRAWN:
            return None
        return machine_svg(self, [str(answer) for answer in range(int(self.outputs.max()) + 1)])

    def run(self, strings: Int64[np.ndarray, "B T"]) -> Int64[np.ndarray, "B T"]:
        """Answer to every prefix of every string.

        Raises:
            ValueError: a symbol id lies outside the alphabet.
        """
        answers: np.ndarray = self.outputs[self.semiautomaton.run(strings, self.start)]
        return answers

    def minimize(self) -> "Transducer":
        """The smallest transducer that answers every string (the empty one included) as this one does.

        Its start is state 0 and its states are numbered breadth first: transducers that answer alike are minimized
        to equal tables and outputs.

        Example:
            >>> spun = Semiautomaton(np.array([[1], [2], [3], [0]]), ("x",))
            >>> Transducer(spun, 0, np.array([0, 1, 0, 1])).minimize().num_states
            2
        """
        semiautomaton, outputs = self.semiautomaton.quotient(self.start, self.outputs)
        return Transducer(semiautomaton, 0, outputs)

    def for_strings_that_are_not_empty(self) -> "Transducer":
        """The smallest transducer that answers all strings but the empty one alike.

        Its start is a state from which all strings lead on alike, of several the one with the least output, or, where
        there is none, a state of its own with output `IGNORE`. So machines that answer these strings alike are equal.

        Example:
            >>> last = Semiautomaton(np.array([[1, 2], [1, 2], [1, 2]]), ("a", "b"))
            >>> Transducer(last, 0, np.array([2, 0, 1])).for_strings_that_are_not_empty().num_states
            2
        """
        table = np.vstack([self.semiautomaton.table[self.start], self.semiautomaton.table]) + 1
        with_start = np.concatenate([[min(IGNORE, self.outputs.min()) - 1], self.outputs])
        apart = Transducer(
            Semiautomaton(table, self.symbols), 0, with_start
        ).minimize()  # nothing leads to its start, whose output is no other state's
        table, outputs = apart.semiautomaton.table, apart.outputs.copy()
        alike = [state for state in range(1, len(table)) if np.array_equal(table[state], table[0])]
        outputs[0] = IGNORE
        start = min(alike, key=lambda state: int(outputs[state]), default=0)
        return Transducer(apart.semiautomaton, start, outputs).minimize()

    def with_empty_answer(self, output: int) -> "Transducer":
        """The smallest transducer that answers the empty string with `output`, and all others as this one does.

        Example:
            >>> always = Transducer(Semiautomaton(np.array([[0]]), ("a",)), 0, np.array([1]))
            >>> always.with_empty_answer(0).outputs.tolist()
            [0, 1]
        """
        table = np.vstack([self.semiautomaton.table[self.start], self.semiautomaton.table]) + 1
        return Transducer(Semiautomaton(table, self.symbols), 0, np.append(output, self.outputs)).minimize()

    def difference_string(self, other: "Transducer") -> tuple[str, ...] | None:
        """Shortest string (of several, the first in symbol order) after which the two answer differently, or None.

        It is empty where already the answers to the empty string differ.

        Raises:
            ValueError: the machines read different symbols.
        """
        labels = (self.outputs.tolist(), other.outputs.tolist())
        return self.semiautomaton.first_difference(other.semiautomaton, (self.start, other.start), labels)

    def equivalent(self, other: "Transducer") -> bool:
        """Whether the two answer every string alike; errors as in `difference_string`."""
        return self.difference_string(other) is None

    def to_json(self) -> dict[str, Any]:
        """Symbols, start, table and outputs, as plain lists."""
        return {
            "symbols": list(self.symbols),
            "start": int(self.start),
            "table": self.semiautomaton.table.tolist(),
            "outputs": self.outputs.tolist(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Transducer":
        """The inverse of `to_json`."""
        machine = Semiautomaton(np.array(content["table"]), tuple(content["symbols"]))
        return cls(machine, content["start"], np.array(content["outputs"]))
