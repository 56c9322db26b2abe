"""Regular expressions in files."""

from collections.abc import Mapping, Sequence

from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex, named_symbols
from lengthwise.automata.regex_syntax import Tokens
from lengthwise.automata.state_elimination import regex_from_dfa
from lengthwise.formats.base import FORMATS, ReadableFormat
from lengthwise.formats.limits import check_text
from lengthwise.formats.notes import Notes

_LISTS: Mapping[str, Tokens] = {"alphabet: ": "characters", "words: ": "words"}
"""The keywords of a line that lists the symbols, and the kind of symbols that each keyword announces."""


@FORMATS.register("regex")
class Regex(ReadableFormat):
    """A regular expression on the first line, in the syntax of `dfa_from_regex`.

    A second line, ``alphabet: abc``, lists the symbols. Without this line, the alphabet consists of the symbols in the
    expression, sorted. A second line ``words: DATA ACK`` also lists the symbols; then the expression is over words.
    Later lines that begin with ``#`` are comments. States without an answer count as rejecting.

    Example:
        >>> Regex.write(Regex.read("(a|b)*"))
        '[ab]*\\n'
        >>> print(Regex.write(Regex.read("DATA* (ACK)\\nwords: DATA ACK")))
        DATA* ACK
        words: DATA ACK
        <BLANKLINE>
    """

    suffixes = (".regex",)
    comment = "# "
    holds_automata_alone = True

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return a regular expression of the machine's language, computed by state elimination."""
        dfa = machine.dfa()
        for symbol in dfa.symbols:
            if not symbol.isprintable():
                raise ValueError(f"expected symbols that can be printed, got {symbol!r}; rename this symbol")
        pattern = regex_from_dfa(dfa)
        if machine.separator:
            return f"{pattern}\nwords: {' '.join(dfa.symbols)}\n"
        # The empty language is written as a class of characters outside the alphabet. Another alphabet may contain
        # these characters, so the alphabet is written.
        names_all = named_symbols(pattern) == dfa.symbols and bool(dfa.minimize().accepting.any())
        return f"{pattern}\n" if names_all else f"{pattern}\nalphabet: {''.join(dfa.symbols)}\n"

    @classmethod
    def write_annotated(cls, machine: LabeledMachine, notes: Notes) -> str:
        """Return a regular expression of the machine's language, followed by comments with the notes."""
        return cls.write(machine) + "".join(f"{cls.comment}{line}\n" for line in notes.lines())

    @staticmethod
    def read(text: str) -> LabeledMachine:
        """Return the smallest automaton of the regular expression in the text."""
        check_text(text)
        return labeled_dfa(dfa_from_regex(*pattern_and_alphabet(text)))


def pattern_and_alphabet(text: str) -> tuple[str, Sequence[str] | None, Tokens]:
    """Return the expression in a file, the symbols that the file lists (or None), and whether symbols are words."""
    pattern, *others = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    others = [line for line in others if not line.startswith("#")]
    lists = [(start, line) for line in others for start in _LISTS if line.startswith(start)]
    if len(others) > 1 or len(lists) < len(others):
        raise ValueError(
            "expected a regular expression and at most one line such as 'alphabet: abc' or 'words: DATA ACK', got "
            "another line; remove this line, or write # before a comment"
        )
    if not lists:
        return pattern, None, "characters"
    start, line = lists[0]
    symbols = line.removeprefix(start)
    return pattern, symbols if _LISTS[start] == "characters" else symbols.split(), _LISTS[start]
