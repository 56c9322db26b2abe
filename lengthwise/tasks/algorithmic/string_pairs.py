"""Pairs of unrelated strings, and pairs of a string and its edited copy (Algorithm 1 of Feng et al., 2023)."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from lengthwise.conventions import PAD

MAX_SHORTER_BY, MAX_LONGER_BY = 3, 2
"""The largest number of letters by which the second string is shorter, or longer, than the first."""

MIN_LETTERS = 3
UNRELATED_FRACTION = 0.4
"""The share of unrelated strings among all drawn strings, before copies that are too long or too short are rejected."""

DELETE, REPLACE, INSERT, NOTHING = range(4)

MIN_SIZE = 2
"""The size, in letters, at which edits no longer delete a letter."""

Pairs = tuple[Int64[Tensor, "N A"], Int64[Tensor, "N B"]]


class Pools(NamedTuple):
    """Pools of letters: each row's alphabet in random order, and the number of its first letters that form the pool."""

    letters: Int64[Tensor, "N a"]
    sizes: Int64[Tensor, " N"]

    def select(self, rows: Tensor) -> "Pools":
        """Return the pools of letters for the rows with these indices."""
        return Pools(self.letters[rows], self.sizes[rows])

    def strings(self, length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
        """Draw a string of this length for each row; letters are independent, and uniform in the row's pool."""
        uniforms = torch.rand(len(self.letters), length, generator=generator, dtype=torch.float64)
        return self.letters.gather(1, (uniforms * self.sizes[:, None]).to(torch.int64))


def draw_ordered_pairs(count: int, length: int, alphabet: int, generator: torch.Generator) -> Pairs:
    """Draw pairs as `draw_pairs` does, with the shorter string first."""
    first, second = draw_pairs(count, length, alphabet, generator)
    first = torch.nn.functional.pad(first, (0, MAX_LONGER_BY), value=PAD)
    swapped = ((second != PAD).sum(1) < length)[:, None]
    return torch.where(swapped, second, first)[:, :length], torch.where(swapped, first, second)


class Edits(NamedTuple):
    """The edits of N strings: D edits for each string, which are applied one after the other.

    `kinds` are DELETE, REPLACE, INSERT and NOTHING, and `letters` are the new letters. `shares` in [0, 1) are positions
    as fractions of the current number of letters. For insertions, they are fractions of the number of gaps, including
    the gaps at both ends.
    """

    kinds: Int64[Tensor, "D N"]
    shares: Float64[Tensor, "D N"]
    letters: Int64[Tensor, "D N"]


def draw_pairs(count: int, length: int, alphabet: int, generator: torch.Generator) -> Pairs:
    """Draw pairs of a first string of `length` (at least 2) letters and a different second string.

    The second string may end in pads.
    """
    sizes = torch.randint(MIN_LETTERS, alphabet + 1, (count,), generator=generator)
    pools = Pools(torch.rand(count, alphabet, generator=generator).argsort(dim=1), sizes)
    num_edits = torch.randint(1, length + 1, (count,), generator=generator)
    first = pools.strings(length, generator)
    second = torch.full((count, length + MAX_LONGER_BY), PAD)
    same = torch.arange(count)
    while len(same):
        second[same] = _second_strings(first[same], pools.select(same), num_edits[same], generator)
        same = same[(second[same, :length] == first[same]).all(1) & (second[same, length] == PAD)]
    return first, second


def _second_strings(
    first: Int64[Tensor, "N A"], pools: Pools, num_edits: Int64[Tensor, " N"], generator: torch.Generator
) -> Int64[Tensor, "N B"]:
    """Draw an unrelated string or an edited copy for each first string.

    The size of a copy follows from the kinds of its edits. If the size is out of bounds (`MAX_SHORTER_BY`,
    `MAX_LONGER_BY`), only these kinds, and the choice between a copy and an unrelated string, are drawn again.
    """
    count, length = first.shape
    shortest, longest = max(1, length - MAX_SHORTER_BY), length + MAX_LONGER_BY
    kinds = torch.empty(length, count, dtype=torch.int64)
    is_copy = torch.empty(count, dtype=torch.bool)
    waiting = torch.arange(count)
    while len(waiting):
        drawn = torch.randint(NOTHING, (length, len(waiting)), generator=generator)
        drawn[torch.arange(length)[:, None] >= num_edits[waiting]] = NOTHING
        copies = torch.rand(len(waiting), generator=generator) >= UNRELATED_FRACTION
        kinds[:, waiting], is_copy[waiting] = drawn, copies
        size = sizes_while_edited(drawn, length)[-1]
        waiting = waiting[copies & ((size < shortest) | (size > longest))]
    second = pools.strings(longest, generator)
    size = torch.randint(shortest, longest + 1, (count, 1), generator=generator)
    second[torch.arange(longest) >= size] = PAD
    shares = torch.rand(length, count, generator=generator, dtype=torch.float64)
    edits = Edits(kinds, shares, pools.strings(length, generator).T)
    second[is_copy] = edited(first[is_copy], Edits(*(part[:, is_copy] for part in edits)), longest)
    return second


def sizes_while_edited(kinds: Int64[Tensor, "D N"], length: int) -> Int64[Tensor, "D+1 N"]:
    """Return each string's size before its first edit and after each edit; sizes do not fall below `MIN_SIZE`."""
    steps = (kinds == INSERT).to(torch.int64) - (kinds == DELETE).to(torch.int64)
    free = length + torch.cat([torch.zeros_like(kinds[:1]), steps]).cumsum(0)
    return free + (MIN_SIZE - free).clamp(min=0).cummax(0).values


def edited(strings: Int64[Tensor, "N A"], edits: Edits, width: int) -> Int64[Tensor, "N B"]:
    """Return each string after its edits, cut or padded to `width`.

    Every position of the result is traced back, edit by edit, to an edit that wrote its letter or to a position in the
    original string. A letter that an edit wrote is stored as a negative number.
    """
    sizes = sizes_while_edited(edits.kinds, strings.shape[1])
    grown = sizes.diff(dim=0)
    positions = (edits.shares * (sizes[:-1] + (grown > 0))).to(torch.int16)
    writes = (edits.kinds == REPLACE) | (edits.kinds == INSERT)
    write_positions = torch.where(writes, positions, torch.iinfo(torch.int16).max)
    origin = np.tile(np.arange(width, dtype=np.int16)[:, None], len(strings))
    backwards = (part.to(torch.int16).numpy()[::-1] for part in (positions, grown, write_positions, ~edits.letters))
    moved = np.empty_like(origin)
    for position, growth, write, letter in zip(*backwards, strict=True):
        is_written = origin == write
        np.greater_equal(origin, position, out=moved, casting="unsafe")
        moved *= growth
        origin -= moved
        np.copyto(origin, letter, where=is_written)
    origins = torch.from_numpy(origin.T).to(torch.int64)
    kept = strings.gather(1, origins.clamp(0, strings.shape[1] - 1))
    return torch.where(torch.arange(width) < sizes[-1][:, None], torch.where(origins < 0, ~origins, kept), PAD)


def edited_by_definition(strings: Int64[Tensor, "N A"], edits: Edits, width: int) -> Int64[Tensor, "N B"]:
    """Return the same strings as `edited`, computed edit by edit."""
    results = torch.full((len(strings), width), PAD)
    for row, letters in enumerate(strings.tolist()):
        for kind, share, letter in zip(*(part[:, row].tolist() for part in edits), strict=True):
            position = int(share * (len(letters) + (kind == INSERT)))
            if kind == INSERT:
                letters.insert(position, letter)
            elif kind == REPLACE:
                letters[position] = letter
            elif kind == DELETE and len(letters) > MIN_SIZE:
                del letters[position]
        results[row, : len(letters)] = torch.tensor(letters[:width])
    return results
