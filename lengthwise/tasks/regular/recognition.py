"""Recognition: is a string in a regular language? The shared part of its tasks, above all honest sampling."""

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
from lengthwise.tasks.base_rates import ShallowTask

Strings = Int64[np.ndarray, "N T"]

Edit = Callable[[Strings, int, torch.Generator], Strings]
"""A random change of strings, of their number of symbols, that keeps their length.

Edits are numpy's: of a few strings they take a third of the time that torch's do.
"""

EDIT_ROUNDS = 8
"""How often an edit that leaves a string in the language is drawn again."""

REPEAT_WEIGHT = 6.0
"""What each symbol that repeats the one before multiplies the odds of a persistent string by."""

MAX_STATES = 1_000
"""The size of the smallest automaton of a language that a task takes, at most."""

Alphabet = Annotated[tuple[str, ...], BeforeValidator(lambda given: tuple(given) if isinstance(given, str) else given)]
"""Symbols in the order of their ids; a text is taken apart into its characters."""

MAX_PAIRS = 256
"""Of neighboring symbols, which a logistic regression counts."""

OUT, IN = 0, 1
"""The classes, and the indices of the complement and of the language itself in a task's joint sampler."""


class RecognitionTask(RegularTask, ShallowTask):
    """Whether a string is in a language; the classes are "out" and "in", and every prefix is supervised.

    A task needs no more than its `language`. A sampled batch is half inside and half outside (an extra string falls to
    either by chance), its rows shuffled. Where a length has no string of one class, the length is legal but not
    balanced, and all strings come from the other.

    Strings inside are drawn from the language, or, where a task has `profiles` (languages that partition its own, say
    by depth), half of them from a uniformly drawn profile among those possible. Strings outside are near misses: a
    quarter is uniform, a quarter is a string inside with one or two substitutions, a quarter is a string inside with a
    window of another instead, and a quarter is drawn from `neighbor`, a language outside but close by; where
    there is none, or none of the length, it is a string inside with two different symbols swapped. A draw from the
    language, a profile or the neighbor is by a fair coin uniform or persistent: every symbol that repeats the one
    before multiplies the odds of the string by `REPEAT_WEIGHT`. Long runs meet the bounds of a language often. An edit
    that leaves the string in the language is drawn again, `EDIT_ROUNDS` times in all; then substitutions are tried as
    often (swaps cannot lead out of Tomita 1, 5 and 6), and a string that is still inside is replaced by a uniform one
    outside.

    A prefix of a sample is not distributed as a sample of its length, so every length needs its own strings.
    """

    prefix_exchangeable: ClassVar[bool] = False
    num_counted: ClassVar[int] = 1 << 12

    @property
    @abstractmethod
    def language(self) -> DFA:
        """The automaton of the language; the same object for equal tasks."""

    @property
    def profiles(self) -> tuple[DFA, ...]:
        """Languages that partition the task's own by a trait that uniform strings show unevenly; none by default."""
        return ()

    @property
    def neighbor(self) -> DFA | None:
        """A language outside the task's own that is hard to tell from it; none by default."""
        return None

    @property
    def classes(self) -> tuple[str, ...]:
        """Outside and inside the language."""
        return ("out", "in")

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the language."""
        return self.language.symbols

    @property
    def transducer(self) -> Transducer:
        """The automaton of the language as a transducer to the classes."""
        return self.language.transducer

    def is_legal_length(self, length: int) -> bool:
        """Every length from 1."""
        return length >= 1

    def is_balanced_length(self, length: int) -> bool:
        """Whether there are strings of this length both inside and outside."""
        return self.is_legal_length(length) and bool(self._sampler.possible(length)[[OUT, IN]].all())

    def baseline(self, length: int) -> float:
        """One half, and 1 where all strings are of one class."""
        self.check_length(length)
        return 0.5 if self.is_balanced_length(length) else 1.0

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw strings of both classes; every prefix is supervised."""
        self.check_length(length)
        inputs = self._draw_batch(batch_size, length, generator)
        return Batch(inputs, self.solve(inputs))

    def draw(
        self, count: int, length: int, generator: torch.Generator
    ) -> tuple[Int64[Tensor, "N T"], Int64[Tensor, " N"]]:
        """Strings of a batch, and whether each is in the language."""
        batch = self.sample(count, length, generator)
        return batch.inputs, batch.targets[:, -1]

    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """The ends, whether all symbols occur equally often, both together, and the number of runs."""
        counts = _symbol_counts(inputs, len(self.symbols))
        equal = (counts == counts[:, :1]).all(1).long()
        ends = len(self.symbols) * inputs[:, 0] + inputs[:, -1]
        return {
            "first and last symbol": ends,
            "whether counts are equal": equal,
            "whether counts are equal, first and last symbol": len(self.symbols) ** 2 * equal + ends,
            "number of runs": 1 + (inputs[:, 1:] != inputs[:, :-1]).sum(1),
        }

    def shallow_counts(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, "N F"]]:
        """How often each symbol occurs, and each pair of neighbors where there are at most `MAX_PAIRS` of them."""
        num_symbols = len(self.symbols)
        counts = _symbol_counts(inputs, num_symbols)
        if num_symbols**2 > MAX_PAIRS:
            return {"logistic regression on counts of symbols": counts}
        pairs = _symbol_counts(num_symbols * inputs[:, :-1] + inputs[:, 1:], num_symbols**2)
        return {"logistic regression on counts of symbols and pairs": torch.cat([counts, pairs], 1)}

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """What the automaton says of each prefix; a task that knows a formula gives that instead."""
        return torch.from_numpy(self.transducer.run(inputs.numpy())).contiguous()

    @property
    def _sampler(self) -> StringSampler:
        """Sampler of the complement, the language, the profiles and the neighbor, in this order; then persistent."""
        return _sampler_of(self.language, self.profiles, self.neighbor)

    @property
    def _num_languages(self) -> int:
        """How many languages the sampler draws from, each uniformly or persistently."""
        return len(self._sampler.starts) // 2

    def _has_inside(self, length: int) -> bool:
        """Whether the language has strings of this length."""
        return bool(self._sampler.possible(length)[IN])

    def _draw_batch(self, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
        if not self.is_balanced_length(length):
            origin = torch.full((batch_size,), IN if self._has_inside(length) else OUT)
            return self._draw(self._varied(origin, length, generator), length, generator)
        extra = int(torch.randint(2, (), generator=generator)) if batch_size % 2 else 0
        num_inside = batch_size // 2 + extra
        num_outside = batch_size - num_inside
        # Quarters of the strings outside; what is left over falls to any of them by chance.
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
        """Every second row of the language becomes one of a possible profile; all but `OUT` may become persistent."""
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
        """Strings, uniform or persistent, each from the language of the joint sampler that `origin` names."""
        uniforms = torch.rand(len(origin), length, generator=generator, dtype=torch.float64)
        return torch.from_numpy(self._sampler.sample(uniforms.numpy(), origin.numpy())).contiguous()

    def _edit_outside(self, strings: Strings, edit: Edit, generator: torch.Generator) -> Strings:
        """Edit strings of the language so that they leave it; substitute, then draw uniformly, where no edit does."""
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
    """Raise a ValueError that names `setting` unless the language is small, and there is something to learn about it.

    That is so if of the strings of one symbol or more some are inside and some outside. `language` must be minimal.
    """
    if language.num_states > MAX_STATES:
        raise ValueError(
            f"{setting}: expected a language of at most {MAX_STATES:,} states, got {language.num_states:,}; simplify it"
        )
    machine = language.semiautomaton
    after_a_symbol = [machine.reachable(state) for state in set(machine.table[language.start].tolist())]
    inside = language.accepting[np.concatenate(after_a_symbol)]
    if inside.all() or not inside.any():
        raise ValueError(
            f"{setting}: expected a language with strings inside and outside, got one that holds "
            f"{'every' if inside.all() else 'no'} string of one symbol or more; there is nothing to decide"
        )


@lru_cache(maxsize=64)
def _sampler_of(language: DFA, profiles: tuple[DFA, ...], neighbor: DFA | None) -> StringSampler:
    languages = [language.complement(), language, *profiles, *([neighbor] if neighbor else [])]
    return joint_sampler(languages, (1.0, REPEAT_WEIGHT))


def substitute(strings: Strings, num_symbols: int, generator: torch.Generator) -> Strings:
    """Replace the symbols at one or at two positions (a fair choice; one where T is 1) by other symbols, uniformly."""
    num_rows, length = strings.shape
    edited, rows = strings.copy(), np.arange(num_rows)
    first = torch.randint(length, (num_rows,), generator=generator).numpy()
    shift = torch.randint(1, num_symbols, (2, num_rows), generator=generator).numpy()
    edited[rows, first] = (edited[rows, first] + shift[0]) % num_symbols
    if length > 1:
        second = (first + torch.randint(1, length, (num_rows,), generator=generator).numpy()) % length
        again = shift[1] * torch.randint(2, (num_rows,), generator=generator).numpy()
        edited[rows, second] = (edited[rows, second] + again) % num_symbols
    return edited


def transplant(strings: Strings, num_symbols: int, generator: torch.Generator) -> Strings:
    """Replace a window of every string, uniform among all, by the same window of another string of the batch."""
    num_rows, length = strings.shape
    cuts = torch.rand(num_rows, length + 1, generator=generator).topk(2).indices.sort().values.numpy()
    position = np.arange(length)
    inside = (position >= cuts[:, :1]) & (position < cuts[:, 1:])
    return np.where(inside, strings[torch.randperm(num_rows, generator=generator).numpy()], strings)


def swap(strings: Strings, num_symbols: int, generator: torch.Generator) -> Strings:
    """Exchange the symbols of a uniformly drawn position and of a position that holds another symbol, if any does."""
    num_rows, length = strings.shape
    rows = np.arange(num_rows)
    first = torch.randint(length, (num_rows,), generator=generator).numpy()
    differs = strings != strings[rows, first][:, None]
    # Where no symbol differs, every priority is 0 and the first position, which holds the same symbol, is taken.
    second = (torch.rand(num_rows, length, generator=generator).numpy() * differs).argmax(1)
    edited = strings.copy()
    edited[rows, first], edited[rows, second] = strings[rows, second], strings[rows, first]
    return edited


def _symbol_counts(inputs: Int64[Tensor, "N T"], num_symbols: int) -> Int64[Tensor, "N S"]:
    """How often each symbol occurs in each string."""
    return torch.zeros(len(inputs), num_symbols, dtype=torch.int64).scatter_add_(1, inputs, torch.ones_like(inputs))
