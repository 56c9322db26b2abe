"""The base class of tasks that recognize a regular language, and the sampling of their strings."""

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Int64
from pydantic import BeforeValidator
from torch import Tensor

from lengthwise.automata import DFA, Transducer
from lengthwise.automata.dfa import joint_sampler
from lengthwise.automata.sampling import StringSampler
from lengthwise.tasks.base import Batch, RegularTask
from lengthwise.tasks.base_rates import Problems, ShallowTask, symbol_counts

Strings = Int64[np.ndarray, "N T"]

Edit = Callable[[Strings, int, torch.Generator], Strings]
"""A function that changes strings at random and keeps their length, given the size of the alphabet.

Edits use NumPy, which takes a third of torch's time for a few strings.
"""

EDIT_ROUNDS = 8
"""The largest number of times that an edit is tried until the string is outside the language."""

REPEAT_WEIGHT = 6.0
"""The factor by which each symbol that repeats the symbol before it changes the odds of a persistent string."""

MAX_STATES = 1_000
"""The largest size, in states, of the smallest automaton of a task's language."""

Alphabet = Annotated[tuple[str, ...], BeforeValidator(lambda given: tuple(given) if isinstance(given, str) else given)]
"""Symbols in the order of their ids; a text is split into its characters."""

MAX_PAIRS = 256
"""The largest number of pairs of neighboring symbols that a logistic regression counts."""

OUT, IN = 0, 1
"""The ids of the classes, which are also the indices of the complement and the language in a task's joint sampler."""


class RecognitionTask(RegularTask, ShallowTask):
    """Whether a string is in a language; the classes are "out" and "in", and every prefix is supervised.

    A task must define only its `language`. In a sampled batch, half of the strings are *inside*, that is in the
    language, and half are *outside*, in random order. In an odd batch, chance decides the class of the extra string. If
    a length has strings of one class only, it is legal but not balanced.

    Strings inside are drawn from the language. A task may have `profiles`, languages that partition the task's
    language, for example by depth. Half of the strings inside then come from a profile, drawn uniformly among the
    possible profiles.

    Strings outside are of four kinds, a quarter each:

    - uniform strings outside,
    - strings inside with one or two substitutions,
    - strings inside, with one window replaced by the symbols of another string inside at the same positions,
    - strings from `neighbor`, a similar language that has no string in common with the task's language. If there is no
      neighbor, or it has no string of this length: strings inside with two different symbols swapped.

    A draw from the language, a profile or the neighbor is uniform or persistent, by a fair coin. In a persistent draw,
    every symbol that repeats the symbol before it multiplies the odds of the string by `REPEAT_WEIGHT`. The long runs
    of persistent strings often reach the bounds of a language. If an edited string is still inside, the edit is drawn
    again, up to `EDIT_ROUNDS` times in total. If all edits fail, substitutions are tried up to `EDIT_ROUNDS` times,
    because swaps cannot lead out of Tomita 1, 5 and 6. A string that is still inside is replaced by a uniform string
    outside.

    A prefix of a sample is not distributed like a sample of its length, so every length needs its own strings.
    """

    prefix_exchangeable: ClassVar[bool] = False
    num_counted: ClassVar[int] = 1 << 12

    @property
    @abstractmethod
    def language(self) -> DFA:
        """Return the automaton of the language; equal tasks return the same object."""

    @property
    def profiles(self) -> tuple[DFA, ...]:
        """Return languages that partition the task's language, so that rare kinds of its strings are also drawn."""
        return ()

    @property
    def neighbor(self) -> DFA | None:
        """Return a language that is disjoint from the task's language but similar to it, or None (the default)."""
        return None

    classes: ClassVar[tuple[str, ...]] = ("out", "in")

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the symbols of the language."""
        return self.language.symbols

    @property
    def transducer(self) -> Transducer:
        """Return the automaton of the language as a transducer whose answers are the classes."""
        return self.language.transducer

    @property
    def max_drawn_length(self) -> int:
        """Return the largest length for which the sampler's table of probabilities fits in memory."""
        return self._sampler.longest

    def is_balanced_length(self, length: int) -> bool:
        """Return whether there are strings of this length both inside and outside the language."""
        return self.is_legal_length(length) and bool(self._sampler.possible(length)[[OUT, IN]].all())

    def baseline(self, length: int) -> float:
        """Return one half, or 1 if all strings of this length are of one class."""
        return 0.5 if self.is_balanced_length(length) else 1.0

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw strings of both classes; every prefix is supervised."""
        inputs = self._draw_batch(batch_size, length, generator)
        return Batch(inputs, self.solve(inputs))

    def draw(self, count: int, length: int, generator: torch.Generator) -> Problems:
        """Draw the strings of a batch, and return them with their answers: whether each string is in the language."""
        batch = self.sample(count, length, generator)
        return batch.inputs, batch.targets[:, -1]

    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return four features of each string by name.

        The features are the pair of the first and the last symbol, whether all symbols occur equally often, both of
        these features in one integer, and the number of runs of equal symbols.
        """
        counts = symbol_counts(inputs, len(self.symbols))
        equal = (counts == counts[:, :1]).all(1).long()
        ends = len(self.symbols) * inputs[:, 0] + inputs[:, -1]
        return {
            "first and last symbol": ends,
            "whether counts are equal": equal,
            "whether counts are equal, first and last symbol": len(self.symbols) ** 2 * equal + ends,
            "number of runs": 1 + (inputs[:, 1:] != inputs[:, :-1]).sum(1),
        }

    def shallow_counts(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, "N F"]]:
        """Return counts of symbols, and of pairs of neighboring symbols if there are at most `MAX_PAIRS` such pairs."""
        num_symbols = len(self.symbols)
        counts = symbol_counts(inputs, num_symbols)
        if num_symbols**2 > MAX_PAIRS:
            return {"logistic regression on counts of symbols": counts}
        pairs = symbol_counts(num_symbols * inputs[:, :-1] + inputs[:, 1:], num_symbols**2)
        return {"logistic regression on counts of symbols and pairs": torch.cat([counts, pairs], 1)}

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the automaton's answer to each prefix; a task that has a formula overrides this method."""
        return torch.from_numpy(self.transducer.run(inputs.numpy())).contiguous()

    @property
    def _sampler(self) -> StringSampler:
        """Return a sampler of complement, language, profiles and neighbor: for uniform, then for persistent draws."""
        return _sampler_of(self.language, self.profiles, self.neighbor)

    @property
    def _num_languages(self) -> int:
        """Return the number of languages from which the sampler draws, both uniformly and persistently."""
        return len(self._sampler.starts) // 2

    def _has_inside(self, length: int) -> bool:
        """Return whether the language has strings of this length."""
        return bool(self._sampler.possible(length)[IN])

    def _draw_batch(self, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
        if not self.is_balanced_length(length):
            origin = torch.full((batch_size,), IN if self._has_inside(length) else OUT)
            return self._draw(self._varied(origin, length, generator), length, generator)
        num_inside = batch_size // 2 + (int(torch.randint(2, (), generator=generator)) if batch_size % 2 else 0)
        num_outside = batch_size - num_inside
        # The kinds take turns, beginning with a random kind, so that no kind is favored if the number of strings is not
        # a multiple of four.
        kind = (torch.arange(num_outside) + torch.randint(4, (), generator=generator)) % 4
        origin = torch.full((batch_size,), IN)
        origin[num_inside:][kind == 0] = OUT
        substituted, transplanted, swapped = (num_inside + torch.nonzero(kind == k)[:, 0] for k in (1, 2, 3))
        if self.neighbor is not None and self._sampler.possible(length)[-1]:
            origin[swapped] = self._num_languages - 1
            swapped = swapped[:0]
        inputs = self._draw(self._varied(origin, length, generator), length, generator)
        for rows, edit in ((substituted, substitute), (transplanted, transplant), (swapped, swap)):
            inputs[rows] = torch.from_numpy(self._edit_outside(inputs[rows].numpy(), edit, generator))
        return inputs[torch.randperm(batch_size, generator=generator)]

    def _varied(self, origin: Int64[Tensor, " B"], length: int, generator: torch.Generator) -> Int64[Tensor, " B"]:
        """Replace every second `IN` by a possible profile; make every origin except `OUT` persistent by a fair coin.

        An origin is the index, in the joint sampler, of the language from which a string is drawn.
        """
        first = IN + 1
        possible = np.flatnonzero(self._sampler.possible(length)[first : first + len(self.profiles)]) + first
        rows = torch.nonzero(origin == IN)[:, 0]
        if len(possible) and len(rows):
            rows = rows[int(torch.randint(2, (), generator=generator)) :: 2]
            picks = torch.randint(len(possible), (len(rows),), generator=generator)
            origin[rows] = torch.from_numpy(possible)[picks]
        persistent = torch.randint(2, origin.shape, generator=generator) * (origin != OUT)
        return origin + self._num_languages * persistent

    def _draw(self, origin: Int64[Tensor, " N"], length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
        """Draw strings, each from the language whose index in the joint sampler is in `origin`."""
        uniforms = torch.rand(len(origin), length, generator=generator, dtype=torch.float64)
        return torch.from_numpy(self._sampler.sample(uniforms.numpy(), origin.numpy())).contiguous()

    def _edit_outside(self, strings: Strings, edit: Edit, generator: torch.Generator) -> Strings:
        """Edit strings until they are outside the language; if this fails, try substitutions, then draw outside."""
        edited, inside = strings.copy(), np.arange(len(strings))
        for attempt in [edit] * EDIT_ROUNDS + [substitute] * EDIT_ROUNDS:
            changed = attempt(strings[inside], len(self.symbols), generator)
            edited[inside] = changed
            inside = inside[self.language.accepts(changed)]
            if not len(inside):
                return edited
        outside = torch.full((len(inside),), OUT)
        edited[inside] = self._draw(outside, strings.shape[1], generator).numpy()
        return edited


def check_language(language: DFA, setting: str) -> None:
    """Raise a ValueError if a language is too large or trivial; the message names `setting`.

    Among strings of one symbol or more, some must be inside the language and some outside. `language` must be minimal.
    """
    if language.num_states > MAX_STATES:
        raise ValueError(
            f"{setting}: expected a language of at most {MAX_STATES:,} states, got {language.num_states:,}; choose a "
            "smaller language"
        )
    machine = language.semiautomaton
    after_a_symbol = [machine.reachable(state) for state in set(machine.table[language.start].tolist())]
    inside = language.accepting[np.concatenate(after_a_symbol)]
    if inside.all() or not inside.any():
        raise ValueError(
            f"{setting}: expected a language with strings inside and outside it, got a language that contains "
            f"{'every' if inside.all() else 'no'} string of one symbol or more; choose a language with both"
        )


@lru_cache(maxsize=64)
def _sampler_of(language: DFA, profiles: tuple[DFA, ...], neighbor: DFA | None) -> StringSampler:
    languages = [language.complement(), language, *profiles, *([neighbor] if neighbor else [])]
    return joint_sampler(languages, (1.0, REPEAT_WEIGHT))


def substitute(strings: Strings, num_symbols: int, generator: torch.Generator) -> Strings:
    """Replace one or two symbols of each string by uniform other symbols.

    A fair coin chooses between one and two symbols. Strings of length 1 have one symbol replaced.
    """
    num_rows, length = strings.shape
    edited, rows = strings.copy(), np.arange(num_rows)
    first = torch.randint(length, (num_rows,), generator=generator).numpy()
    # A cyclic shift of ids by 1 to `num_symbols` - 1 always gives another symbol.
    shift = torch.randint(1, num_symbols, (2, num_rows), generator=generator).numpy()
    edited[rows, first] = (edited[rows, first] + shift[0]) % num_symbols
    if length > 1:
        second = (first + torch.randint(1, length, (num_rows,), generator=generator).numpy()) % length
        again = shift[1] * torch.randint(2, (num_rows,), generator=generator).numpy()
        edited[rows, second] = (edited[rows, second] + again) % num_symbols
    return edited


def transplant(strings: Strings, num_symbols: int, generator: torch.Generator) -> Strings:
    """In every string, replace a uniformly drawn window by the symbols of another string at the same positions."""
    num_rows, length = strings.shape
    # The two cuts differ, so no window is empty.
    cuts = torch.rand(num_rows, length + 1, generator=generator).topk(2).indices.sort().values.numpy()
    position = np.arange(length)
    inside = (position >= cuts[:, :1]) & (position < cuts[:, 1:])
    return np.where(inside, strings[torch.randperm(num_rows, generator=generator).numpy()], strings)


def swap(strings: Strings, num_symbols: int, generator: torch.Generator) -> Strings:
    """In each string, exchange the symbol at a uniform position with a different symbol of the same string.

    A string whose symbols are all equal stays as it is.
    """
    num_rows, length = strings.shape
    rows = np.arange(num_rows)
    first = torch.randint(length, (num_rows,), generator=generator).numpy()
    differs = strings != strings[rows, first][:, None]
    # If no symbol differs, every priority is 0 and `argmax` takes the first position, which has the same symbol.
    second = (torch.rand(num_rows, length, generator=generator).numpy() * differs).argmax(1)
    edited = strings.copy()
    edited[rows, first], edited[rows, second] = strings[rows, second], strings[rows, first]
    return edited
