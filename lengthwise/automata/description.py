"""Facts about a machine: its size, symbols and answers, and properties of its transition monoid."""

from typing import Any

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.monoid import MAX_ELEMENTS, TransitionMonoid, bounded_monoid, max_elements
from lengthwise.display import counted

COUNTED_LENGTH = 10
"""The length, in symbols, at which a description counts the accepted strings."""


def described_monoid(monoid: TransitionMonoid | None, maximum: int = MAX_ELEMENTS) -> str:
    """Return a phrase with the size of a monoid, and whether the monoid is a group, aperiodic or commutative.

    The argument None stands for a monoid with more than `maximum` elements.
    """
    if monoid is None:
        return f"more than {maximum:,} elements"
    traits = {"a group": monoid.is_group, "aperiodic": monoid.is_aperiodic, "commutative": monoid.is_commutative}
    elements = counted(monoid.size, "element")
    return ", ".join([elements, *(trait for trait, holds in traits.items() if holds)])


class Description:
    """A machine, the smallest equivalent machine, and the transition monoid of the smallest machine.

    For a language, this monoid is the syntactic monoid.

    If `answers_empty` is False, the empty string is ignored, because nets do not answer it. Then the smallest
    equivalent machine need only give the same answers to all nonempty strings, and shortest strings have at least one
    symbol.

    Example:
        >>> from lengthwise.automata.labeled import labeled_dfa
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> description = Description(labeled_dfa(dfa_from_regex("(a|b)*abb")))
        >>> for line in description.lines():
        ...     print(line)
        states: 4, the fewest
        symbols: a b
        answers: reject, accept
        shortest strings: reject (the empty one), accept abb
        transition monoid: 7 elements, aperiodic
        star-free: yes, because the monoid is aperiodic
        accepted of length 10: 128 of 1,024
        >>> facts = description.facts()
        >>> facts["star_free"], facts["shortest_strings"]["accept"], facts["accepted"]
        (True, ['a', 'b', 'b'], 128)
    """

    def __init__(self, labeled: LabeledMachine, *, answers_empty: bool = True) -> None:
        self.labeled = labeled
        self.answers_empty = answers_empty
        machine = labeled.machine
        self.smallest = machine.minimize() if answers_empty else machine.minimize_nonempty()
        # The monoid of a machine with Q states has up to Q^Q elements, so it is enumerated only up to a bound.
        self.max_elements = max_elements(self.smallest.semiautomaton)
        self.monoid = bounded_monoid(self.smallest.semiautomaton, self.max_elements)

    @property
    def is_star_free(self) -> bool | None:
        """True if the language is star-free; None if answers are not reject and accept, or the monoid is too large."""
        # Schützenberger's theorem: a regular language is star-free if and only if its syntactic monoid is aperiodic.
        return self.monoid.is_aperiodic if self.labeled.is_automaton and self.monoid is not None else None

    def lines(self) -> list[str]:
        """Return the facts about the machine as lines of text."""
        labeled, num_states = self.labeled, self.labeled.machine.num_states
        num_fewest = self.smallest.num_states
        fewest = "the fewest" if num_fewest == num_states else f"{num_fewest} in the smallest machine"
        shortest = [f"{name} {labeled.text(string) or '(the empty one)'}" for name, string in self._shortest().items()]
        lines = [
            f"states: {num_states}, {fewest}",
            f"symbols: {' '.join(labeled.text([symbol]) for symbol in labeled.symbols)}",
            f"answers: {', '.join(labeled.classes)}",
            *([f"no answer: in {counted(labeled.num_unanswered, 'state')}"] if labeled.num_unanswered else []),
            f"shortest strings: {', '.join(shortest)}",
            f"transition monoid: {described_monoid(self.monoid, self.max_elements)}",
        ]
        if self.is_star_free is not None:
            yes, is_or_not = ("yes", "is") if self.is_star_free else ("no", "is not")
            lines.append(f"star-free: {yes}, because the monoid {is_or_not} aperiodic")
        if labeled.is_automaton:
            all_strings = len(labeled.symbols) ** COUNTED_LENGTH
            lines.append(f"accepted of length {COUNTED_LENGTH}: {self._num_accepted:,} of {all_strings:,}")
        return lines

    def facts(self) -> dict[str, Any]:
        """Return the facts about the machine as values for JSON; a fact that is unknown or does not apply is None."""
        names = ("is_group", "is_aperiodic", "is_commutative")
        traits = {} if self.monoid is None else {name.removeprefix("is_"): getattr(self.monoid, name) for name in names}
        return {
            "states": self.labeled.machine.num_states,
            "fewest_states": self.smallest.num_states,
            "symbols": list(self.labeled.symbols),
            "answers": list(self.labeled.classes),
            "states_without_answer": self.labeled.num_unanswered,
            "shortest_strings": self._shortest(),
            "answers_empty": self.answers_empty,
            "monoid": None if self.monoid is None else {"elements": self.monoid.size, **traits},
            "star_free": self.is_star_free,
            "accepted_length": COUNTED_LENGTH,
            "accepted": self._num_accepted if self.labeled.is_automaton else None,
        }

    @property
    def _num_accepted(self) -> int:
        # There are V^T strings, so they are counted by state, with T Q V additions.
        return self.labeled.dfa().count(COUNTED_LENGTH)

    def _shortest(self) -> dict[str, list[str]]:
        """Return a shortest string for each answer that occurs."""
        answering = self.labeled if self.answers_empty else self.labeled.without_empty_string()
        machine, strings = answering.machine, {}
        for index, name in enumerate(self.labeled.classes):
            string = machine.semiautomaton.shortest_string(machine.start, machine.outputs == index)
            if string is not None:
                strings[name] = list(string)
        return strings
