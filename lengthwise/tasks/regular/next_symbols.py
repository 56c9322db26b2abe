"""Prediction of the symbols that may come next. Among tasks on formal languages, only recognition is more common."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.automata import DFA, Transducer
from lengthwise.automata.dfa import joint_sampler
from lengthwise.automata.sampling import StringSampler
from lengthwise.conventions import IGNORE
from lengthwise.tasks.base import TASKS, Batch, RegularTask
from lengthwise.tasks.regular.recognition import REPEAT_WEIGHT, RecognitionTask
from lengthwise.tasks.regular.scratchpad import BaseTask

WEIGHTS = (1.0, REPEAT_WEIGHT)
"""The factors by which a repeated symbol changes the odds of a uniform string and of a persistent string."""

Odds = Float64[np.ndarray, "Q V"]
"""Odds of prefixes, by the state to which they lead and by their last symbol."""

OTHER = "another set"
"""The name of the class for all sets that are never the right answer."""


@TASKS.register("next-symbols")
class NextSymbols(RegularTask):
    """The set of symbols that may come next in a string of a language, after every prefix.

    After w, the symbol s may come next if some string of the language begins with w s. With `with_end`, the set also
    contains the end if w is in the language. Each set that occurs is a class. `base` is a task of recognition (a name,
    or a name and fields), which defines the language. If no string of the language begins with a prefix, nothing is
    supervised from that prefix on. Samples have no such prefix. With `with_other`, the last class represents all sets
    that are never the right answer. Nets that score each symbol by itself can answer with such a set
    (`lengthwise.models.set_answers`).

    A sample is a prefix of a string of the language. Half of the samples are uniform among all such prefixes of their
    length. The other half is persistent: every symbol that repeats the symbol before it multiplies the odds of the
    sample by `REPEAT_WEIGHT`. A length is balanced if every set can be the answer. The bounded Dyck languages D_2, and
    D_n with an odd n, have no balanced length.

    Raises:
        ValueError: the base task is unknown or recognizes no language, or there is only one class. Tomita 5 and 6 have
            only one set without `with_end`, because all symbols may always come next.

    Example:
        >>> task = NextSymbols(base={"name": "bounded-dyck", "depth": 2})
        >>> task.classes
        ('(, )', '(', ')')
        >>> [task.classes[answer] for answer in task.solve(task.encode("(())")[None])[0]]
        ['(, )', ')', '(, )', '(']

    Source: Bhattamishra et al., "On the Ability and Limitations of Transformers to Recognize Formal Languages" (arXiv
        2009.11264), section 4, after Gers and Schmidhuber (2001).
    Differs from the source: a set is one class instead of a number for each of its symbols. A string is scored by the
        answer after its last symbol, not by all answers together. Samples are prefixes of one length, drawn uniformly
        or persistently. In the source, samples are whole strings from a generator for each language. The source has no
        end in its sets. For Tomita 5 and 6, the source's answer is membership, which is also what the set shows if
        `with_end` is set.
    """

    prefix_exchangeable: ClassVar[bool] = False

    base: BaseTask = Field("tomita", validate_default=True)
    with_end: bool = False
    with_other: bool = Field(False, exclude_if=lambda given: not given)

    @model_validator(mode="after")
    def _has_different_answers(self) -> "NextSymbols":
        if not isinstance(self.base, RecognitionTask):
            raise ValueError(
                f"base: expected a task that recognizes a language, got {self.base.name}; choose for example tomita"
            )
        if len(self.classes) < 2:
            way_out = "choose another language" if self.with_end else "set with_end=true, or choose another language"
            raise ValueError(
                f"base: expected a language in which the set of next symbols depends on the prefix, got a language "
                f"where the set is always {self.classes[0]!r}; {way_out}"
            )
        return self

    @property
    def language(self) -> DFA:
        """Return the language of the base task."""
        assert isinstance(self.base, RecognitionTask)
        return self.base.language

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the symbols of the language."""
        return self.language.symbols

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the sets of next symbols, and with `with_other` the name of the class "another set"."""
        return _next_sets(self.language, self.with_end).names + (OTHER,) * self.with_other

    @property
    def members(self) -> Bool[np.ndarray, "S M"]:
        """Return a row for each set in `classes`, in the order of `classes`; the class "another set" has no row.

        A row has a bool for each symbol and, if `with_end`, a bool for the end. The bool is True if the set contains
        this symbol or the end.
        """
        return _next_sets(self.language, self.with_end).members

    @property
    def transducer(self) -> Transducer:
        """Return the automaton of the language, whose states answer with their sets of next symbols."""
        sets = _next_sets(self.language, self.with_end)
        return Transducer(self.language.semiautomaton, self.language.start, sets.outputs)

    def is_legal_length(self, length: int) -> bool:
        """Return whether some string of the language has a prefix of this length."""
        return length >= 1 and bool(self._prefixes.sampler.possible(length).any())

    def is_balanced_length(self, length: int) -> bool:
        """Return whether each set of next symbols can be the answer to a string of this length."""
        if not self.is_legal_length(length):
            return False
        return set(range(len(self.members))) <= set(self.transducer.outputs[self._prefixes.reached(length)].tolist())

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw prefixes of strings of the language; every prefix is supervised."""
        is_persistent = torch.randint(2, (batch_size,), generator=generator)
        uniforms = torch.rand(batch_size, length, generator=generator, dtype=torch.float64)
        strings = self._prefixes.sampler.sample(uniforms.numpy(), is_persistent.numpy())
        inputs = torch.from_numpy(strings).contiguous()
        return Batch(inputs, self.solve(inputs))

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the automaton's answer to each prefix; the automaton is the only definition of the language."""
        return torch.from_numpy(self.transducer.run(inputs.numpy())).contiguous()

    def baseline(self, length: int) -> float:
        """Return the probability of the likeliest set of next symbols at the end of a sample of this length."""
        return float(self._odds_of_answers(length).max())

    @property
    def _prefixes(self) -> "_Prefixes":
        return _prefixes_of(self.language)

    def _odds_of_answers(self, length: int) -> Float64[np.ndarray, " Y"]:
        odds, outputs = self._prefixes.odds(length), self.transducer.outputs
        is_possible = odds > 0  # excludes states that only the empty string reaches, whose set may be no class
        return np.bincount(outputs[is_possible], odds[is_possible], len(self.classes))


class _NextSets:
    """The sets of next symbols in a language.

    `names` and `members` describe the sets that occur after a symbol. `outputs` contains the index of each state's set.
    """

    def __init__(self, language: DFA, with_end: bool) -> None:
        table = language.semiautomaton.table
        is_live = language.semiautomaton.leading_to(language.accepting)
        is_legal = is_live[table]
        may_end = language.accepting & with_end
        keys = [(*legal.tolist(), bool(end)) for legal, end in zip(is_legal, may_end, strict=True)]
        after_a_symbol = {int(state) for q in language.semiautomaton.reachable(language.start) for state in table[q]}
        occurring = sorted({keys[state] for state in after_a_symbol if is_live[state]}, reverse=True)
        self.members = np.array(occurring)[:, : len(language.symbols) + with_end]
        self.members.flags.writeable = False
        self.names = tuple(_name(language.symbols, key) for key in occurring)
        numbers = {key: number for number, key in enumerate(occurring)}
        self.outputs = np.array(
            [numbers.get(key, IGNORE) if live else IGNORE for key, live in zip(keys, is_live, strict=True)]
        )


def _name(symbols: Sequence[str], key: tuple[bool, ...]) -> str:
    *are_legal, end = key
    legal = ", ".join(symbol for symbol, is_legal in zip(symbols, are_legal, strict=True) if is_legal)
    return (legal or "no symbol") + " or end" * end


class _Prefixes:
    """The prefixes of a language's strings, and the probability of each state after a drawn prefix."""

    def __init__(self, language: DFA) -> None:
        self.language = language
        self.live = language.semiautomaton.leading_to(language.accepting)
        self._odds: list[list[Odds]] = [[] for _ in WEIGHTS]
        self._reached: list[Bool[np.ndarray, " Q"]] = []

    @cached_property
    def sampler(self) -> StringSampler:
        """Return a sampler with two starts: start 0 draws uniform prefixes, start 1 draws prefixes with long runs."""
        return joint_sampler([DFA(self.language.semiautomaton, self.language.start, self.live)], WEIGHTS)

    def reached(self, length: int) -> Bool[np.ndarray, " Q"]:
        """Return for each state whether a prefix of `length` symbols (at least 1) reaches the state."""
        while len(self._reached) < length:
            before = self._reached[-1] if self._reached else np.arange(len(self.live)) == self.language.start
            after = np.zeros_like(self.live)
            after[self.language.semiautomaton.table[before]] = True
            self._reached.append(after & self.live)
        return self._reached[length - 1]

    def odds(self, length: int) -> Float64[np.ndarray, " Q"]:
        """Return the probability of each state after a sample of `length` symbols (at least 1)."""
        while len(self._odds[0]) < length:
            for weight, odds in zip(WEIGHTS, self._odds, strict=True):
                odds.append(self._after_another_symbol(odds, weight))
        uniform, persistent = (odds[length - 1].sum(axis=1) for odds in self._odds)
        return np.asarray((uniform + persistent) / 2)

    def _after_another_symbol(self, odds: list[Odds], weight: float) -> Odds:
        """Return the odds of prefixes with one more symbol, by state and last symbol.

        A prefix of a prefix is also a prefix, so these odds follow from the odds of the shorter prefixes.
        """
        table = self.language.semiautomaton.table
        if odds:
            # A symbol that repeats the last one counts `weight` times, every other symbol once.
            before = odds[-1].sum(axis=1, keepdims=True) + (weight - 1) * odds[-1]
        else:
            before = np.zeros(table.shape)
            before[self.language.start] = 1
        after = np.zeros(table.shape)
        for symbol in range(table.shape[1]):
            np.add.at(after[:, symbol], table[:, symbol], before[:, symbol])
        # No sample begins with a prefix that cannot be continued to a string of the language.
        after[~self.live] = 0
        total = after.sum()
        return np.asarray(after / total if total else after)


_next_sets = lru_cache(maxsize=64)(_NextSets)
_prefixes_of = lru_cache(maxsize=64)(_Prefixes)
