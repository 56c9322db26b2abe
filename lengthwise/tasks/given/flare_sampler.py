"""The splits of FLaRe, drawn by its protocol for any regular language."""

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from lengthwise.automata.dfa import DFA
from lengthwise.automata.sampling import StringSampler
from lengthwise.files import check_new, write_by_rename
from lengthwise.randomness import generator_for
from lengthwise.tasks.given.flare import LABELS, NEXT_SYMBOLS, NUM_EDITS, STRINGS

MAX_TRIES = 100
"""The number of strings that are tried for one example before the split is given up."""

String = tuple[int, ...]
"""The ids of a string's symbols."""


class FlareExample(NamedTuple):
    """An example: a string, its label, and its number of edits, which is None if the string was not made by edits."""

    string: String
    label: int
    num_edits: int | None = None


class Split(NamedTuple):
    """A split: its folder below the language's folder, its number of strings, and the largest length of its strings."""

    folder: str
    num_strings: int
    max_length: int


SPLITS = (
    Split(".", 10_000, 40),
    Split("datasets/validation-short", 1_000, 40),
    Split("datasets/validation-long", 1_000, 80),
    Split("datasets/test", 5_010, 500),
    Split("datasets/test-short-held-out", 1_000, 40),
)
"""FLaRe's splits in the order in which they are drawn. The last split contains no string of the first three splits."""


def flare_splits(language: DFA, *, seed: int = 0, splits: Sequence[Split] = SPLITS) -> dict[Split, list[FlareExample]]:
    """Draw the splits of a language by the protocol of FLaRe.

    The label of each string is decided by a fair coin. A string of label 1 has a length drawn uniformly from the
    lengths up to `max_length` at which the language has strings. Given this length, the probability of a string is
    proportional to a product. The product has a factor for each state in which the automaton reads a symbol of the
    string. The factor is 1 / (number of symbols that can continue to a string of the language, plus 1 if the state
    accepts). For a string of label 0, a fair coin chooses either a uniform string of a uniform length, or a string of
    label 1 with K random edits, where K is geometric with mean 2. An edit inserts, replaces or deletes a uniform symbol
    at a uniform position, with equal probability among the edits that keep the length legal. If the resulting string is
    in the language, it is drawn again, with another coin.

    A split whose folder ends in ``held-out`` contains no string of earlier splits. Such a split is left out if
    `MAX_TRIES` strings in a row, drawn for one example, occur in earlier splits or have the wrong label. This happens
    for ``(01)*``.

    Raises:
        ValueError: no string up to a split's longest length is in the language, or almost every string is.

    Source: Butoi et al., "Training Neural Networks as Recognizers of Formal Languages" (arXiv 2411.07107), section 3,
        and the code that draws the data of FLaRe.
    Differs from the source: the random numbers. The source's product also has a factor for the state in which a string
        ends. This factor is the same for all accepting states of FLaRe's languages, so it changes no probability. Log
        probabilities are not written, because the published numbers are sums over all continuations and not the
        logarithms of the strings' probabilities.
    """
    drawn: dict[Split, list[FlareExample]] = {}
    for split in splits:
        chance = np.random.default_rng(generator_for(seed, "flare", split.folder).initial_seed())
        is_held_out = split.folder.endswith("held-out")
        before = {example.string for examples in drawn.values() for example in examples} if is_held_out else set()
        examples = _draw_split(_Proposals(language, split.max_length, chance), split.num_strings, before)
        if examples is None and not is_held_out:
            raise ValueError(
                f"language: expected strings in the language and outside it, of up to {split.max_length} symbols, got "
                f"only strings of one label in {MAX_TRIES} tries; choose another language"
            )
        if examples is not None:
            drawn[split] = examples
    return drawn


def write_flare(folder: Path, language: DFA, *, seed: int = 0, splits: Sequence[Split] = SPLITS) -> None:
    """Write the splits of `flare_splits` in FLaRe's files, which `read_examples` reads.

    Raises:
        ValueError: a file exists already; otherwise as for `flare_splits`.

    Example:
        >>> from tempfile import mkdtemp
        >>> from lengthwise.automata.flare import flare
        >>> from lengthwise.tasks.given.reading import read_examples
        >>> folder = Path(mkdtemp())
        >>> write_flare(folder, flare("parity"), splits=[Split(".", 100, 40)])
        >>> read_examples(folder).counts.num_rows
        100
    """
    names = (STRINGS, LABELS, NUM_EDITS, NEXT_SYMBOLS)
    check_new(folder / split.folder / name for split in splits for name in names)
    live = _Continuations(language)
    for split, examples in flare_splits(language, seed=seed, splits=splits).items():
        target = folder / split.folder
        target.mkdir(parents=True, exist_ok=True)
        inside = [example for example in examples if example.label]
        outside = [example for example in examples if not example.label]
        contents = {
            STRINGS: [" ".join(language.symbols[v] for v in example.string) for example in examples],
            LABELS: [str(example.label) for example in examples],
            NUM_EDITS: [str(example.num_edits or "") for example in outside],
            NEXT_SYMBOLS: [live.next_symbols(example.string) for example in inside],
        }
        for name, lines in contents.items():
            write_by_rename(target / name, "".join(f"{line}\n" for line in lines).encode())


@dataclass(frozen=True)
class _Continuations:
    """The symbols that can be read in each state of a language's automaton on the way to a string of the language."""

    language: DFA

    @cached_property
    def continues(self) -> Bool[np.ndarray, "Q V"]:
        """Return for each state and symbol whether reading the symbol in the state can still lead to acceptance."""
        machine = self.language.semiautomaton
        return np.asarray(machine.leading_to(self.language.accepting)[machine.table])

    def sampler(self) -> StringSampler:
        machine, targets = self.language.semiautomaton, self.language.accepting
        num_actions = self.continues.sum(axis=1) + targets
        weights = np.repeat(1 / np.maximum(num_actions, 1), machine.num_symbols).reshape(machine.table.shape)
        return StringSampler(machine, np.array([self.language.start]), targets, weights)

    @cached_property
    def next_sets(self) -> list[str]:
        """Return, for each state, the sorted symbols that can come next and whether the string may end, as JSON."""
        names = [sorted(np.array(self.language.symbols)[row].tolist()) for row in self.continues]
        entries = zip(names, self.language.accepting.tolist(), strict=True)
        return [json.dumps({"s": " ".join(able), "e": ends}, separators=(",", ":")) for able, ends in entries]

    def next_symbols(self, string: String) -> str:
        """Return as JSON the set of symbols that can come next after each prefix of a string."""
        state, sets = self.language.start, [self.next_sets[self.language.start]]
        for symbol in string:
            state = int(self.language.semiautomaton.table[state, symbol])
            sets.append(self.next_sets[state])
        return f"[{','.join(sets)}]"


class _Proposals:
    """A source of random strings of at most `max_length` symbols: in the language, edited, or uniform."""

    def __init__(self, language: DFA, max_length: int, chance: np.random.Generator) -> None:
        self.language = language
        self.max_length = max_length
        self.chance = chance
        self.sampler = _Continuations(language).sampler()
        self.lengths = np.array([n for n in range(max_length + 1) if self.sampler.possible(n)[0]])
        if not len(self.lengths):
            raise ValueError(
                f"language: expected a language with a string of at most {max_length} symbols, got a language without "
                "such a string; raise max_length of the split"
            )

    def inside(self, count: int) -> list[String]:
        """Draw random strings that are in the language."""
        lengths = self.chance.choice(self.lengths, count)
        strings: list[String] = [()] * count
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            drawn = self.sampler.sample(self.chance.random((len(rows), length)), np.zeros(len(rows), np.int64))
            for row, string in zip(rows.tolist(), drawn.tolist(), strict=True):
                strings[row] = tuple(string)
        return strings

    def outside(self, count: int) -> list[tuple[String, int | None]]:
        """Draw strings that may be outside the language, each with its number of edits.

        The number is None if the string was drawn uniformly and not edited.
        """
        is_edited = self.chance.random(count) < 0.5
        sources = iter(self.inside(int(is_edited.sum())))
        return [self._edited(next(sources)) if edited else (self._uniform(), None) for edited in is_edited]

    def _uniform(self) -> String:
        length = int(self.chance.integers(self.max_length + 1))
        return tuple(self.chance.integers(len(self.language.symbols), size=length).tolist())

    def _edited(self, string: String) -> tuple[String, int]:
        edited, num_symbols = list(string), len(self.language.symbols)
        count = int(self.chance.geometric(0.5))
        for _ in range(count):
            kinds = ["insert"] * (len(edited) < self.max_length)
            kinds += ["replace"] * (len(edited) > 0 and num_symbols > 1) + ["delete"] * (len(edited) > 0)
            kind = kinds[self.chance.integers(len(kinds))]
            at = int(self.chance.integers(len(edited) + (kind == "insert")))
            if kind == "delete":
                del edited[at]
            elif kind == "insert":
                edited.insert(at, int(self.chance.integers(num_symbols)))
            else:
                edited[at] = (edited[at] + int(self.chance.integers(1, num_symbols))) % num_symbols
        return tuple(edited), count


def _draw_split(proposals: _Proposals, count: int, excluded: Container[String]) -> list[FlareExample] | None:
    """Return the examples of a split, or None if `MAX_TRIES` strings for an example were rejected."""
    labels = proposals.chance.integers(2, size=count).tolist()
    examples: dict[int, FlareExample] = {}
    for _ in range(MAX_TRIES):
        missing = [row for row in range(count) if row not in examples]
        inside, outside = ([row for row in missing if labels[row] == label] for label in (1, 0))
        for row, string in zip(inside, proposals.inside(len(inside)), strict=True):
            if string not in excluded:
                examples[row] = FlareExample(string, 1)
        tried = proposals.outside(len(outside))
        accepted = proposals.language.accepts_each([string for string, _ in tried])
        for row, (string, num_edits), is_inside in zip(outside, tried, accepted, strict=True):
            if not is_inside and string not in excluded:
                examples[row] = FlareExample(string, 0, num_edits)
        if len(examples) == count:
            return [examples[row] for row in range(count)]
    return None
