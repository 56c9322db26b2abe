"""Machines whose answers have names, and the shortest string on which two machines differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lengthwise.automata.answers import REJECT_ACCEPT, accepting_index, acceptor_index
from lengthwise.automata.dfa import DFA
from lengthwise.automata.drawing import MAX_DRAWN, machine_svg
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE
from lengthwise.registry import check_known
from lengthwise.validation import check_kind, texts_of, truncate


@dataclass(frozen=True, eq=False)
class LabeledMachine:
    """A Moore machine and the names of its answers: the content of a machine file.

    A state whose output is `IGNORE` has no answer.

    Raises:
        ValueError: names are empty or repeated, or an answer has no name.

    Example:
        >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
        >>> machine = LabeledMachine(Transducer(flip, 0, np.array([0, 1])), ("yes", "no"))
        >>> machine.accepting_class, machine.dfa().accepting.tolist()
        (0, [True, False])
    """

    machine: Transducer
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_kind("machine", self.machine, Transducer, "a Transducer")
        texts_of("classes", self.classes)
        if not all(self.classes) or len(set(self.classes)) < len(self.classes):
            raise ValueError(f"classes: expected distinct names that are not empty, got {self.classes}; rename them")
        outputs = self.machine.outputs
        if not ((outputs == IGNORE) | ((outputs >= 0) & (outputs < len(self.classes)))).all():
            raise ValueError(
                f"outputs: expected ids of answers in 0..{len(self.classes) - 1} or {IGNORE} (no answer), got "
                f"{sorted(set(outputs.tolist()))}; give a name in classes for each id"
            )

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, in the order of their ids."""
        return self.machine.symbols

    @property
    def separator(self) -> str:
        """The text between the symbols of a string: empty if each symbol is one character, else a blank."""
        return "" if all(len(symbol) == 1 for symbol in self.symbols) else " "

    def text(self, string: Sequence[str]) -> str:
        """Return a string of symbols as one line of text; unprintable characters are escaped."""
        text = self.separator.join(string)
        return text if text.isprintable() else repr(text)[1:-1]

    @property
    def accepting_class(self) -> int | None:
        """The id of the answer that means "accepted", or None if the answers are not accept and reject."""
        return accepting_index(self.classes)

    @property
    def is_automaton(self) -> bool:
        """True if every state accepts or rejects."""
        return self.accepting_class is not None and IGNORE not in self.machine.outputs

    @property
    def num_unanswered(self) -> int:
        """The number of reachable states without an answer."""
        reached = self.machine.semiautomaton.reachable(self.machine.start)
        return int((self.machine.outputs[reached] == IGNORE).sum())

    def dfa(self) -> DFA:
        """Return the automaton of the accepted strings; a state without an answer rejects.

        Common labels such as OK and FAIL mean accept and reject (`acceptor_index`).

        Raises:
            ValueError: the answers do not mean accept and reject.
        """
        if (accepting := acceptor_index(self.classes)) is None:
            raise ValueError(
                f"classes: expected two answers such as {' and '.join(REJECT_ACCEPT)}, got "
                f"{', '.join(map(repr, self.classes))}; name the accepting answer (accept)"
            )
        return DFA(self.machine.semiautomaton, self.machine.start, self.machine.outputs == accepting)

    def accepting(self, answer: str) -> "LabeledMachine":
        """Return the machine that accepts the strings with this answer, and rejects the strings with other answers.

        Raises:
            ValueError: the machine does not have this answer.

        Example:
            >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
            >>> LabeledMachine(Transducer(flip, 0, np.array([0, 1])), ("OK", "FAIL")).accepting("OK").answer_names()
            ['accept', 'reject']
        """
        check_known("answer", answer, self.classes)
        return self.renamed({name: REJECT_ACCEPT[name == answer] for name in self.classes}, REJECT_ACCEPT)

    def renamed(self, names: Mapping[str, str], order: Sequence[str] = ()) -> "LabeledMachine":
        """Return the machine with new names for its answers; answers with the same new name are united.

        The answers keep their order, unless `order` is given.

        Raises:
            ValueError: `names` renames an answer that the machine does not have, or `order` lacks an answer.

        Example:
            >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
            >>> LabeledMachine(Transducer(flip, 0, np.array([0, 1])), ("OK", "FAIL")).renamed({"FAIL": "BAD"}).classes
            ('OK', 'BAD')
        """
        for name in names:
            check_known("answer", name, self.classes)
        new = [names.get(name, name) for name in self.classes]
        classes = tuple(order or dict.fromkeys(new))
        for name in new:
            check_known("order", name, classes)
        numbers = np.array([classes.index(name) for name in new])
        outputs = self.machine.outputs
        # `where` computes both sides, so `IGNORE`, which is negative, must not be an index.
        renumbered = np.where(outputs == IGNORE, IGNORE, numbers[np.maximum(outputs, 0)])
        return LabeledMachine(Transducer(self.machine.semiautomaton, self.machine.start, renumbered), classes)

    def answer_names(self) -> list[str]:
        """Return the name of each state's answer, or ``""`` if the state has no answer."""
        return ["" if output == IGNORE else self.classes[output] for output in self.machine.outputs.tolist()]

    def answer_to(self, string: Sequence[str]) -> str:
        """Return the name of the machine's answer to a string, or ``""`` if the string has no answer."""
        string = texts_of("string", string)
        index = {symbol: i for i, symbol in enumerate(self.symbols)}
        if unknown := [symbol for symbol in string if symbol not in index]:
            raise ValueError(
                f"string: expected only symbols of the machine ({truncate(' '.join(self.symbols))}), got "
                f"{unknown[0]!r}; replace or remove this symbol"
            )
        ids = np.array([[index[symbol] for symbol in string]], dtype=np.int64)
        state = int(self.machine.semiautomaton.final_states(ids, self.machine.start)[0])
        return self.answer_names()[state]

    def _repr_svg_(self) -> str | None:
        """Return a drawing for notebooks, or None if there are too many states."""
        return machine_svg(self.machine, self.classes) if self.machine.num_states <= MAX_DRAWN else None

    def with_symbols(self, symbols: Sequence[str]) -> "LabeledMachine":
        """Return the machine over more symbols; it rejects every string with a new symbol.

        Raises:
            ValueError: a symbol is new, and the machine is not an automaton (`is_automaton`).
        """
        given = dict.fromkeys(texts_of("symbols", symbols))
        if not (new := [symbol for symbol in given if symbol not in self.symbols]):
            return self
        if not self.is_automaton:
            raise ValueError(
                "alphabet: expected only symbols of the machine, whose answers are not only accept and reject, got "
                f"{new[0]!r}; leave this symbol out"
            )
        extended = self.dfa().with_symbols(new)
        accepting = self.accepting_class or 0
        outputs = np.where(extended.accepting, accepting, 1 - accepting)
        return LabeledMachine(Transducer(extended.semiautomaton, extended.start, outputs), self.classes)

    def mealy(self) -> tuple[Semiautomaton, list[list[str]]]:
        """Return the smallest Mealy machine that answers all nonempty strings like this machine; its start is state 0.

        The second returned value lists the names of the outputs by state and symbol. A missing answer has the name
        ``""``.
        """
        # A Moore machine is a Mealy machine in which the output of an edge is the output of the edge's end. States with
        # equal rows of outputs get one label, so partition refinement gives the smallest Mealy machine.
        outputs = self.machine.outputs[self.machine.semiautomaton.table]
        rows = np.unique(outputs, axis=0, return_inverse=True)[1].reshape(-1)
        smallest, chosen = self.machine.semiautomaton.quotient(self.machine.start, rows)
        names = {
            int(row): [self.classes[y] if y != IGNORE else "" for y in row_outputs]
            for row, row_outputs in zip(rows, outputs, strict=True)
        }
        return smallest, [names[int(row)] for row in chosen]

    def without_empty_string(self) -> "LabeledMachine":
        """Return the machine that does not answer the empty string, and answers all other strings like this machine."""
        return LabeledMachine(self.machine.with_empty_answer(IGNORE), self.classes)

    def aligned(self, symbols: Sequence[str], classes: Sequence[str]) -> "LabeledMachine":
        """Return the machine with its symbols and answers in the given order; names are matched as in `difference`.

        Raises:
            ValueError: the symbols differ, or an answer of the machine is not among `classes`.
        """
        machine = self.machine.semiautomaton.reordered(symbols)
        numbers, given = common_numbers(self.classes, texts_of("classes", classes))
        if unknown := [name for name, number in zip(self.classes, numbers, strict=True) if number not in given]:
            raise ValueError(
                f"machine: expected only answers among {', '.join(classes)}, got {unknown[0]}; rename this answer"
            )
        order = np.array([given.index(number) for number in numbers])
        outputs = np.array([IGNORE if output == IGNORE else order[output] for output in self.machine.outputs])
        return LabeledMachine(Transducer(machine, self.machine.start, outputs), tuple(classes))


def labeled_dfa(dfa: DFA) -> LabeledMachine:
    """Return an automaton as a machine with the answers "reject" and "accept"."""
    check_kind("dfa", dfa, DFA, "a DFA")
    return LabeledMachine(dfa.transducer, REJECT_ACCEPT)


class Difference(NamedTuple):
    """A shortest string that two machines answer differently, and the answers of the first and the second machine."""

    string: tuple[str, ...]
    answers: tuple[str, str]


def difference(first: LabeledMachine, second: LabeledMachine) -> Difference | None:
    """Return a shortest string that two machines answer differently, or None if all answers are equal.

    The search covers all pairs of states that strings lead to, so None proves that the answers are equal. If there are
    several shortest strings, the first in the symbol order of `first` is returned. Symbols are matched by name. Answers
    are matched by name, unless both machines have answers that mean accept and reject (`acceptor_index`). A string is
    compared only if both machines answer it.

    Raises:
        ValueError: the symbols differ; the machines have no common answer; or no string is answered by both machines.

    Example:
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> difference(*(labeled_dfa(dfa_from_regex(pattern, "ab")) for pattern in ("(a|b)*abb", "(a|b)*bb")))
        Difference(string=('b', 'b'), answers=('reject', 'accept'))
    """
    for argument, machine in (("first", first), ("second", second)):
        check_kind(argument, machine, LabeledMachine, "a LabeledMachine")
    renamed = second.machine.semiautomaton.reordered(first.symbols)
    numbers, others = common_numbers(first.classes, second.classes)
    labels = tuple(
        [IGNORE if output == IGNORE else known[output] for output in one.machine.outputs.tolist()]
        for one, known in ((first, numbers), (second, others))
    )
    semiautomaton = first.machine.semiautomaton
    starts = (first.machine.start, second.machine.start)
    # By Hopcroft and Karp, the machines agree on all strings if and only if no reachable pair of states differs.
    string = semiautomaton.first_difference(renamed, starts, (labels[0], labels[1]), ignored=IGNORE)
    if string is not None:
        return Difference(string, (first.answer_to(string), second.answer_to(string)))
    # If no string was compared, None would prove nothing. So give all answered states of one machine the label 0, and
    # of the other machine the label 1. The first difference is then the first string that both machines answer.
    marks = tuple([IGNORE if label == IGNORE else mark for label in own] for mark, own in enumerate(labels))
    if semiautomaton.first_difference(renamed, starts, (marks[0], marks[1]), ignored=IGNORE) is None:
        raise ValueError(
            "machine: expected two machines that both answer some string, got machines with no such string; compare "
            "other machines"
        )
    return None


def common_numbers(first: Sequence[str], second: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return a number for each answer of two machines; answers with the same meaning have the same number.

    Raises:
        ValueError: the two machines have no answer in common.
    """
    accepting = (acceptor_index(first), acceptor_index(second))
    if None not in accepting:
        return [int(answer == accepting[0]) for answer in (0, 1)], [int(answer == accepting[1]) for answer in (0, 1)]
    names = list(dict.fromkeys([*first, *second]))
    if len(names) == len(first) + len(second):
        raise ValueError(
            "machine: expected two machines with an answer in common, got the answers "
            f"{', '.join(map(repr, first))} in one and {', '.join(map(repr, second))} in the other; rename the answers "
            "of one machine (rename), or name the accepting answer (accept)"
        )
    return [names.index(name) for name in first], [names.index(name) for name in second]
