"""Regular expressions in files."""

from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex, named_symbols
from lengthwise.automata.state_elimination import regex_from_dfa
from lengthwise.formats.base import FORMATS, ReadableFormat
from lengthwise.formats.notes import Notes

_ALPHABET = "alphabet: "


@FORMATS.register("regex")
class Regex(ReadableFormat):
    """A regular expression on the first line, in the syntax of `dfa_from_regex`.

    A second line, ``alphabet: abc``, lists the symbols. Without this line, they are the symbols in the expression,
    sorted. Later lines that begin with ``#`` are comments. States without an answer count as rejecting.

    Example:
        >>> Regex.write(Regex.read("(a|b)*"))
        '[ab]*\\n'
    """

    suffixes = (".regex",)
    comment = "# "
    holds_automata_alone = True

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return an expression, computed by state elimination."""
        dfa = machine.dfa()
        for symbol in dfa.symbols:
            if not symbol.isprintable():
                raise ValueError(f"expected symbols that can be printed, got {symbol!r}; rename it")
        pattern = regex_from_dfa(dfa)
        # The expression of the empty language is a class of all other characters, which another alphabet may have.
        names_all = named_symbols(pattern) == dfa.symbols and bool(dfa.minimize().accepting.any())
        alphabet = "" if names_all else f"{_ALPHABET}{''.join(dfa.symbols)}\n"
        return f"{pattern}\n{alphabet}"

    @classmethod
    def write_annotated(cls, machine: LabeledMachine, notes: Notes) -> str:
        """Return the expression, with notes in comments after it."""
        return cls.write(machine) + "".join(f"{cls.comment}{line}\n" for line in notes.lines())

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """Return the smallest automaton of the expression."""
        return labeled_dfa(dfa_from_regex(*pattern_and_alphabet(text)))


def pattern_and_alphabet(text: str) -> tuple[str, str | None]:
    """Return the expression of a file, and its symbols or None."""
    pattern, *others = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    others = [line for line in others if not line.startswith("#")]
    if len(others) > 1 or not all(line.startswith(_ALPHABET) for line in others):
        raise ValueError(f"expected a regular expression and at most a second line {_ALPHABET}abc, got more lines")
    return pattern, others[0].removeprefix(_ALPHABET) if others else None
