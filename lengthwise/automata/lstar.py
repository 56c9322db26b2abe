"""Angluin's L*, which learns a Moore or a Mealy machine from answers to strings of its choice."""

from collections.abc import Callable, Hashable, Sequence
from itertools import product
from typing import Literal, NamedTuple, get_args

import numpy as np

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.validation import check_choice, check_function, whole_number

String = tuple[int, ...]
Kind = Literal["Moore", "Mealy"]
Query = Callable[[String], Hashable]
Rows = dict[String, tuple[Hashable, ...]]


class Hypothesis(NamedTuple):
    """A machine that L* proposes, whose state 0 is the start.

    `access` contains a string to each state, and `table` the next states. ``rows[q][i]`` is the answer to the access
    string of state q followed by suffix i. The first suffixes give the outputs: the empty suffix in a Moore machine,
    and the suffixes of one symbol in a Mealy machine.
    """

    access: list[String]
    table: list[list[int]]
    suffixes: list[String]
    rows: list[tuple[Hashable, ...]]

    def state_after(self, string: Sequence[int]) -> int:
        """Return the hypothesis's state after a string of symbol ids."""
        state = 0
        for symbol in string:
            state = self.table[state][symbol]
        return state

    def mealy_answers(self, string: Sequence[int]) -> list[Hashable]:
        """Return the outputs of the hypothesis, a Mealy machine, along a string."""
        answers = list[Hashable]()
        state = 0
        for symbol in string:
            answers.append(self.rows[state][symbol])
            state = self.table[state][symbol]
        return answers

    def transducer(self, symbols: Sequence[str]) -> Transducer:
        """Return the hypothesis, a Moore machine, with these names for its symbols; its answers must be numbers."""
        outputs = np.array([row[0] for row in self.rows])
        return Transducer(Semiautomaton(np.array(self.table), tuple(symbols)), 0, outputs)

    def separating_suffixes(self) -> list[String]:
        """Return suffixes that separate states: for any two states, the answers after one of these suffixes differ."""
        kept, blocks = list[String](), [tuple[Hashable, ...]()] * len(self.rows)
        for index, suffix in enumerate(self.suffixes):
            finer = [(*block, row[index]) for block, row in zip(blocks, self.rows, strict=True)]
            if len(set(finer)) > len(set(blocks)):
                kept.append(suffix)
                blocks = finer
        return kept or [()]


def learn_by_lstar(
    num_symbols: int,
    kind: Kind,
    query: Query,
    wrong_string: Callable[[Hypothesis], String | None],
    *,
    max_states: int | None = None,
) -> Hypothesis:
    """Return the first hypothesis, a minimal machine, for which `wrong_string` returns None.

    `query` returns the last answer to a string of symbol ids. A Moore machine also answers the empty string.
    `wrong_string` returns a string whose last answer by the hypothesis is wrong, or None. In every machine with the
    answers of `query`, the strings in the hypothesis's `access` lead to different states. So the hypothesis has the
    fewest states of all these machines.

    Raises:
        ValueError: the answers show more than `max_states` states.

    Example:
        >>> last = learn_by_lstar(2, "Moore", lambda string: string[-1:], lambda hypothesis: None)
        >>> last.table
        [[1, 2], [1, 2], [1, 2]]

    Source: Angluin, "Learning regular sets from queries and counterexamples" (1987); Rivest and Schapire, "Inference of
        finite automata using homing sequences" (1993), who add one suffix for each counterexample.
    Differs from the source: no difference.
    """
    check_choice("kind", kind, get_args(Kind))
    whole_number("num_symbols", num_symbols, 1, 10**6)
    check_function("query", query)
    check_function("wrong_string", wrong_string)
    suffixes: list[String] = list(product(range(num_symbols), repeat=0 if kind == "Moore" else 1))
    num_read = len(suffixes[0])
    access: list[String] = [()]
    rows: Rows = {}
    wrong = None
    while True:
        hypothesis = _closed(access, suffixes, num_symbols, query, rows, max_states)
        # A counterexample can show several new states, so it is used until the hypothesis answers it correctly.
        if wrong is None or _last_answer(hypothesis, wrong, num_read) == query(wrong):
            wrong = wrong_string(hypothesis)
        if wrong is None:
            return hypothesis
        suffixes.append(_new_suffix(hypothesis, wrong, num_read, query))


def _closed(
    access: list[String], suffixes: Sequence[String], num_symbols: int, query: Query, rows: Rows, max_states: int | None
) -> Hypothesis:
    """Add access strings until every symbol leads from each state to a state with an access string."""

    def row(string: String) -> tuple[Hashable, ...]:
        known = rows.get(string, ())
        rows[string] = known + tuple(query(string + suffix) for suffix in suffixes[len(known) :])
        return rows[string]

    states = {row(string): state for state, string in enumerate(access)}
    table = list[list[int]]()
    for string in access:  # the list grows inside the loop
        table.append([])
        for symbol in range(num_symbols):
            after = row((*string, symbol))
            if after not in states:
                states[after] = len(access)
                access.append((*string, symbol))
            if max_states is not None and len(access) > max_states:
                raise ValueError(
                    f"max_states: expected at least {len(access)}, because the answers distinguish that many states, "
                    f"got {max_states}; allow more states, or let the system give fewer different outputs"
                )
            table[-1].append(states[after])
    return Hypothesis(list(access), table, list(suffixes), list(states))


def _last_answer(hypothesis: Hypothesis, string: String, num_read: int) -> Hashable:
    num_before = len(string) - num_read
    suffix = hypothesis.suffixes.index(string[num_before:])
    return hypothesis.rows[hypothesis.state_after(string[:num_before])][suffix]


def _new_suffix(hypothesis: Hypothesis, wrong: String, num_read: int, query: Query) -> String:
    """Return a suffix of the counterexample that separates a transition's true target from its hypothetical target."""

    def answer(num_replaced: int) -> Hashable:
        """Return the answer to `wrong` after its first symbols are replaced by an access string to the same state."""
        state = hypothesis.state_after(wrong[:num_replaced])
        return query(hypothesis.access[state] + wrong[num_replaced:])

    # With no symbol replaced, the answer is right. With all symbols replaced, it is the wrong answer of the hypothesis.
    # So the answer changes at some number of replaced symbols, which a binary search finds.
    low, high = 0, len(wrong) - num_read
    expected = answer(high)
    while high - low > 1:
        middle = (low + high) // 2
        if answer(middle) == expected:
            high = middle
        else:
            low = middle
    return wrong[high:]
