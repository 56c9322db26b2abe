"""Moore machines: finite-state transducers that answer every prefix of a string."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.drawing import MAX_DRAWN, machine_svg
from lengthwise.automata.semiautomaton import Semiautomaton, array_of, set_frozen
from lengthwise.conventions import IGNORE
from lengthwise.validation import check_kind, truncate


@dataclass(frozen=True, eq=False)
class Transducer:
    """A Moore machine: the answer to a prefix is ``outputs[q]`` for the state q after the prefix.

    Outputs are class ids, or `IGNORE` (see `lengthwise.conventions`) in states without an answer.

    The machine of the example answers 1 if the number of b so far is odd, else 0. Its outputs are 0 in state 0 (even)
    and 1 in state 1 (odd). On the string b a b b, whose ids are 1 0 1 1, its answers are odd, odd, even, odd.

    Raises:
        ValueError: `start` is not a state, outputs are not whole numbers, or some state does not have one output.

    Example:
        >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
        >>> Transducer(flip, 0, np.array([0, 1])).run(np.array([[1, 0, 1, 1]]))
        array([[1, 1, 0, 1]])
    """

    semiautomaton: Semiautomaton
    start: int
    outputs: Int64[np.ndarray, " Q"]

    def __post_init__(self) -> None:
        outputs = array_of("outputs", self.outputs)
        if outputs.dtype.kind not in "biu":
            raise ValueError(
                f"outputs: expected ids of answers, got numbers of type {outputs.dtype}; number the answers from 0"
            )
        outputs = outputs.astype(np.int64)
        check_kind("semiautomaton", self.semiautomaton, Semiautomaton, "a Semiautomaton")
        self.semiautomaton.check_state(self.start)
        self.semiautomaton.check_labels(outputs, "outputs")
        set_frozen(self, outputs=outputs)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, in the order of their ids."""
        return self.semiautomaton.symbols

    @property
    def num_states(self) -> int:
        """The number of states, Q."""
        return self.semiautomaton.num_states

    def _repr_svg_(self) -> str | None:
        """Return a drawing for notebooks, or None if there are too many states."""
        if self.num_states > MAX_DRAWN:
            return None
        return machine_svg(self, [str(answer) for answer in range(int(self.outputs.max()) + 1)])

    def run(self, strings: Int64[np.ndarray, "B T"]) -> Int64[np.ndarray, "B T"]:
        """Return the answer to every prefix of every string.

        Raises:
            ValueError: a symbol id lies outside the alphabet.
        """
        return np.asarray(self.outputs[self.semiautomaton.run(strings, self.start)])

    def minimize(self) -> "Transducer":
        """Return the smallest transducer that answers every string, including the empty string, like this transducer.

        The start of the result is state 0, and its states are numbered breadth first. So equivalent transducers have
        equal minimized tables and outputs.

        Example:
            >>> spun = Semiautomaton(np.array([[1], [2], [3], [0]]), ("x",))
            >>> Transducer(spun, 0, np.array([0, 1, 0, 1])).minimize().num_states
            2
        """
        # This is partition refinement (Hopcroft, 1971), with a first block for each output, in about V Q log Q steps.
        semiautomaton, outputs = self.semiautomaton.quotient(self.start, self.outputs)
        return Transducer(semiautomaton, 0, outputs)

    def minimize_nonempty(self) -> "Transducer":
        """Return the smallest transducer that answers all nonempty strings like this transducer.

        Suppose that nonempty strings lead to states with the same next states as this transducer's start. Then the
        result starts in the state with the smallest output among these states. Otherwise, the start is a separate state
        with output `IGNORE`. So machines with the same answers to all nonempty strings give equal results.

        Example:
            >>> last = Semiautomaton(np.array([[1, 2], [1, 2], [1, 2]]), ("a", "b"))
            >>> Transducer(last, 0, np.array([2, 0, 1])).minimize_nonempty().num_states
            2
        """
        # No edge leads to the new start, and its output differs from all others, so minimization keeps it separate.
        apart = self.with_empty_answer(min(IGNORE, int(self.outputs.min())) - 1)
        table, outputs = apart.semiautomaton.table, apart.outputs.copy()
        alike = [state for state in range(1, len(table)) if np.array_equal(table[state], table[0])]
        outputs[0] = IGNORE
        start = min(alike, key=lambda state: int(outputs[state]), default=0)
        return Transducer(apart.semiautomaton, start, outputs).minimize()

    def with_empty_answer(self, output: int) -> "Transducer":
        """Return the smallest transducer that answers nonempty strings like this one.

        The result answers the empty string with `output`.

        Example:
            >>> always = Transducer(Semiautomaton(np.array([[0]]), ("a",)), 0, np.array([1]))
            >>> always.with_empty_answer(0).outputs.tolist()
            [0, 1]
        """
        # The new start has no incoming edges, because the old start may also be the state of longer strings.
        table = np.vstack([self.semiautomaton.table[self.start], self.semiautomaton.table]) + 1
        return Transducer(Semiautomaton(table, self.symbols), 0, np.append(output, self.outputs)).minimize()

    def difference_string(self, other: "Transducer") -> tuple[str, ...] | None:
        """Return a shortest string that the two transducers answer differently, or None if they are equivalent.

        If there are several shortest strings, the first in symbol order is returned. The result may be the empty
        string.

        Raises:
            ValueError: the machines read different symbols.
        """
        check_kind("other", other, Transducer, "a Transducer")
        # The search skips pairs of states that follow from visited pairs (Hopcroft and Karp, 1971). So it visits at
        # most as many pairs as both machines together have states.
        labels = (self.outputs.tolist(), other.outputs.tolist())
        return self.semiautomaton.first_difference(other.semiautomaton, (self.start, other.start), labels)

    def equivalent(self, other: "Transducer") -> bool:
        """Return whether the two transducers answer every string alike; errors are as in `difference_string`."""
        return self.difference_string(other) is None

    def to_json(self) -> dict[str, Any]:
        """Return symbols, start, table and outputs as plain lists."""
        return {
            "symbols": list(self.symbols),
            "start": int(self.start),
            "table": self.semiautomaton.table.tolist(),
            "outputs": self.outputs.tolist(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Transducer":
        """Build a transducer from the content that `to_json` returns; other entries are ignored.

        Raises:
            ValueError: an entry is missing, or the entries do not describe a transducer.
        """
        check_kind("content", content, Mapping, "the entries of a transducer")
        if missing := [entry for entry in ("symbols", "start", "table", "outputs") if entry not in content]:
            got = truncate(str(list(content)))
            raise ValueError(f"content: expected the entry {missing[0]!r}, got {got}; give the result of to_json")
        machine = Semiautomaton(np.array(content["table"]), tuple(content["symbols"]))
        return cls(machine, content["start"], np.array(content["outputs"]))
