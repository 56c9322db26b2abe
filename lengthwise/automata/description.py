"""What there is to say of a machine: its size, its symbols and answers, and what its transition monoid tells of it."""

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.monoid import MAX_ELEMENTS, TransitionMonoid, monoid_up_to

COUNTED_LENGTH = 10
"""The length of the strings of which those accepted are counted."""


def described_monoid(monoid: TransitionMonoid | None, maximum: int = MAX_ELEMENTS) -> str:
    """How many elements a monoid has, and whether it is a group, aperiodic or commutative; None has more than that."""
    if monoid is None:
        return f"more than {maximum:,} elements"
    traits = {"a group": monoid.is_group, "aperiodic": monoid.is_aperiodic, "commutative": monoid.is_commutative}
    elements = f"{monoid.size:,} element{'s' * (monoid.size != 1)}"
    return ", ".join([elements, *(trait for trait, holds in traits.items() if holds)])


def described_machine(labeled: LabeledMachine) -> list[str]:
    """Lines about a machine; its monoid is that of the smallest machine, for a language the syntactic one.

    Example:
        >>> from lengthwise.automata.labeled import labeled_dfa
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> for line in described_machine(labeled_dfa(dfa_from_regex("(a|b)*abb"))):
        ...     print(line)
        states: 4, the fewest
        symbols: a b
        answers: reject, accept
        shortest strings: reject (the empty one), accept abb
        transition monoid: 7 elements, aperiodic
        star-free: yes, as the monoid is aperiodic
        accepted of length 10: 128 of 1,024
    """
    smallest = labeled.machine.minimize()
    num_states = labeled.machine.num_states
    fewest = "the fewest" if smallest.num_states == num_states else f"{smallest.num_states} in the smallest machine"
    monoid = monoid_up_to(smallest.semiautomaton)
    lines = [
        f"states: {num_states}, {fewest}",
        f"symbols: {' '.join(labeled.text([symbol]) for symbol in labeled.symbols)}",
        f"answers: {', '.join(labeled.classes)}",
        *([f"no answer: in {labeled.num_unanswered} states"] if labeled.num_unanswered else []),
        f"shortest strings: {_shortest(labeled)}",
        f"transition monoid: {described_monoid(monoid)}",
    ]
    if labeled.is_automaton:
        if monoid is not None:
            yes, is_or_not = ("yes", "is") if monoid.is_aperiodic else ("no", "is not")
            lines.append(f"star-free: {yes}, as the monoid {is_or_not} aperiodic")
        count, all_strings = labeled.dfa().count(COUNTED_LENGTH), len(labeled.symbols) ** COUNTED_LENGTH
        lines.append(f"accepted of length {COUNTED_LENGTH}: {count:,} of {all_strings:,}")
    return lines


def _shortest(labeled: LabeledMachine) -> str:
    """A shortest string to each answer that there is one to."""
    machine = labeled.machine
    strings = []
    for index, name in enumerate(labeled.classes):
        string = machine.semiautomaton.shortest_string(machine.start, machine.outputs == index)
        if string is not None:
            strings.append(f"{name} {labeled.text(string) or '(the empty one)'}")
    return ", ".join(strings)
