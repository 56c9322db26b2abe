"""Recognition of the language of a regular expression."""

from functools import lru_cache
from typing import ClassVar

from pydantic import model_validator

from lengthwise.automata import DFA
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.recognition import Alphabet, RecognitionTask, check_language


@TASKS.register("regex")
class RegexLanguage(RecognitionTask):
    """Recognition of the strings that a regular expression matches as a whole.

    `pattern` may contain symbols of one character, `.`, `[ab]`, `[a-d]`, `[^ab]`, groups, `|`, `*`, `+`, `?`, `{2}` and
    `{2,5}`. After a backslash, each of these special characters is an ordinary symbol. There are no anchors. See
    `dfa_from_regex` in `lengthwise.automata.regex`. `alphabet` contains the symbols in the order of their ids (in a
    list or as a text). If it is empty, the symbols are the ones in the pattern, sorted. The smallest automaton of the
    language answers strings, and draws strings in the language, outside it, and near misses.

    Raises:
        ValueError: the pattern has an error (the message gives its position), or is too large; the alphabet does not
            consist of distinct single characters, or lacks a symbol of the pattern; all strings of one symbol or more
            are in the language, or no such string is; the language needs more than 1,000 states.

    Example:
        >>> task = RegexLanguage(pattern="(a|b)*abb")
        >>> task.solve(task.encode("babbabb")[None]).tolist()
        [[0, 0, 0, 1, 0, 0, 1]]
    """

    named_by: ClassVar[tuple[str, ...]] = ("pattern",)
    pattern: str = "(a|b)*abb"
    alphabet: Alphabet = ()

    @model_validator(mode="after")
    def _can_be_learned(self) -> "RegexLanguage":
        check_language(self.language, "pattern")
        return self

    @property
    def language(self) -> DFA:
        """Return the smallest automaton of the language."""
        return _language(self.pattern, self.alphabet)


@lru_cache(maxsize=64)
def _language(pattern: str, alphabet: tuple[str, ...]) -> DFA:
    return dfa_from_regex(pattern, alphabet or None)
