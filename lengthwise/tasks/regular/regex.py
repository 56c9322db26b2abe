"""Recognition of the language of a regular expression."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from pydantic import Field, model_validator

from lengthwise.automata import DFA
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.regex_syntax import Tokens
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.recognition import Alphabet, RecognitionTask, check_language

CHARACTERS: Any = Field("characters", exclude_if=lambda tokens: tokens == "characters")
"""The default kind of symbols, which run specifications leave out."""


@TASKS.register("regex")
class RegexLanguage(RecognitionTask):
    """Recognition of the strings that a regular expression matches as a whole.

    `pattern` may contain symbols of one character, `.`, `[ab]`, `[a-d]`, `[^ab]`, groups, `|`, `*`, `+`, `?`, `{2}` and
    `{2,5}`. After a backslash, each of these special characters is an ordinary symbol. There are no anchors. See
    `dfa_from_regex` in `lengthwise.automata.regex`. `alphabet` contains the symbols in the order of their ids (in a
    list or as a text). If `alphabet` is empty, the symbols are the sorted symbols of the pattern. If `tokens` is
    "words", symbols are words with blanks between them, in the pattern and in `alphabet`. The smallest automaton of the
    language answers strings. It also draws strings in the language, strings outside it, and near misses.

    Raises:
        ValueError: the pattern has an error (the message gives its position), or is too large; the alphabet does not
            consist of distinct single characters (or words), or lacks a symbol of the pattern; all strings of one
            symbol or more are in the language, or no such string is; the language needs more than 1,000 states.

    Example:
        >>> task = RegexLanguage(pattern="(a|b)*abb")
        >>> task.solve(task.encode("babbabb")[None]).tolist()
        [[0, 0, 0, 1, 0, 0, 1]]
        >>> task = RegexLanguage(pattern="CONNECT (DATA ACK)* CLOSE", tokens="words")
        >>> task.solve(task.encode("CONNECT DATA ACK CLOSE")[None]).tolist()
        [[0, 0, 0, 1]]
    """

    named_by: ClassVar[tuple[str, ...]] = ("pattern",)
    pattern: str = "(a|b)*abb"
    alphabet: Alphabet = ()
    tokens: Tokens = CHARACTERS

    @model_validator(mode="before")
    @classmethod
    def _split_words(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        is_text = fields.get("tokens") == "words" and isinstance(fields.get("alphabet"), str)
        return {**fields, "alphabet": fields["alphabet"].split()} if is_text else fields

    @model_validator(mode="after")
    def _can_be_learned(self) -> "RegexLanguage":
        check_language(self.language, "pattern")
        return self

    @property
    def language(self) -> DFA:
        """Return the smallest automaton of the language."""
        return _language(self.pattern, self.alphabet, self.tokens)


@lru_cache(maxsize=64)
def _language(pattern: str, alphabet: tuple[str, ...], tokens: Tokens) -> DFA:
    return dfa_from_regex(pattern, alphabet or None, tokens)
