"""Recognition of a random regular language."""

from typing import Annotated

from pydantic import Field

from lengthwise.automata import DFA
from lengthwise.automata.random_languages import random_language
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.recognition import RecognitionTask


@TASKS.register("random-language")
class RandomLanguage(RecognitionTask):
    """Recognition of a random regular language, whose minimal automaton has `num_states` states.

    `seed` is the index of a language among languages of the same numbers of states and symbols. `random_language` in
    `lengthwise.automata.random_languages` draws the same languages on every computer, and rejects trivial languages. In
    the languages that remain, every length from `num_states` on has strings of both classes. Also, at least half of all
    pairs of states still lead to different states after the same 40 random symbols. Strings are drawn as in every
    recognition task: strings in the language are uniform or have long runs, and strings outside are uniform or near
    misses.

    Raises:
        ValueError: a size is out of its range, or there are hardly any languages of these sizes.

    Example:
        >>> task = RandomLanguage(num_states=4, seed=3)
        >>> task.language.num_states, task.symbols
        (4, ('a', 'b'))

    Source: ours.
    """

    num_states: Annotated[int, Field(ge=2, le=30)] = 6
    num_symbols: Annotated[int, Field(ge=2, le=26)] = 2
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @property
    def language(self) -> DFA:
        """Return the minimal automaton that was drawn."""
        return random_language(self.num_states, self.num_symbols, self.seed)
