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
    """Recognition of the strings that a whole regular expression matches.

    `pattern` has single characters as symbols, `.`, `[ab]`, `[a-d]`, `[^ab]`, groups, `|`, `*`, `+`, `?`, `{2}` and
    `{2,5}`, a backslash before one of these characters that is a symbol, and no anchors (`dfa_from_regex` in
    `lengthwise.automata.regex`). `alphabet` holds the symbols in the order of their ids (in a list or as a text); left
    empty, they are those that the pattern names, sorted. There is no formula: the smallest automaton answers, and draws
    strings inside, outside and near misses.

    Raises:
        ValueError: the pattern has an error (the message says where), or is too large; the alphabet is not made of
            distinct single characters, or lacks one of the pattern's; of the strings of one symbol or more, all are in
            the language, or none; the language needs more than 1,000 states.

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
        """The smallest automaton of the language."""
        return _language(self.pattern, self.alphabet)


@lru_cache(maxsize=64)
def _language(pattern: str, alphabet: tuple[str, ...]) -> DFA:
    return dfa_from_regex(pattern, alphabet or None)
