"""The search for a large length up to which bounds on attention prove a transformer right on every string."""

from typing import Any

import numpy as np
import torch

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.attention import distances
from lengthwise.certification.methods.attention.evidence import AttentionEvidence
from lengthwise.certification.methods.attention.masses import (
    Blocks,
    Masses,
    Pairs,
    Paths,
    mass_bounds,
    pairs_of,
    paths_of,
)
from lengthwise.certification.methods.attention.pieces import NUM_ROUNDS, Halved, Pieces, halved, head_of, states_after
from lengthwise.certification.methods.attention.scores import Heads, heads_of, layers_of, states_of_symbols
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.parts import Level
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.models.transformer import Transformer
from lengthwise.ops.intervals import Intervals
from lengthwise.validation import narrow

MAX_LENGTH = 4_096
"""The largest length that is tried, in symbols. The work of the prover and of the checker is proportional to it."""

MIN_LENGTH = 10
"""The smallest length that counts as a proof, in symbols.

A proof up to a smaller length would add little, because `certify` reads all short strings anyway. These strings have up
to 12 symbols for a task with two symbols, and up to 7 symbols for a task with three symbols.
"""

NUM_BISECTIONS = 4
"""The number of bisections of the first block (range) of lengths that has no proof."""

MAX_PRODUCTS = 1 << 22
"""The largest number of products of boxes of queries with boxes of keys, for one kind of queries.

Queries of a later layer are of one kind if they belong to the same symbol and state. Many boxes (pieces) enclose the
queries or keys of a kind.
"""

MAX_WEIGHTS = 1 << 24
"""The largest number of bounds on the exponentials of scores, and of sums along paths of the machine (`masses`)."""


@PROVERS.register("attention")
class AttentionProver(Prover):
    """A search for bounds on the masses that attention gives to kinds of positions, one block of lengths after another.

    A head's output at the last position is the mean of the values of all positions, weighted by attention. In the first
    layer, the value of a position depends on its symbol alone. The mass of a symbol is the sum of the weights of its
    positions. If a score depends only on two symbols and their distance, a longest path gives the largest mass over all
    strings of a regular language (`masses`). Now consider all strings that end with the same symbol in the same state.
    One box contains their masses, and one box contains the first layer's results for them. In a later layer, the pair
    of symbol and state replaces the symbol. The previous layer's box for a position's pair bounds the value of this
    position. The boxes for the pairs of two positions, and the distance of the positions, bound the score between them.
    The boxes of the last layer's masses are halved, into at most `MAX_PIECES` pieces, until the right answer has the
    largest logit in each piece.

    Source: ours.
    """

    reader = None

    @classmethod
    def applies_to(cls, model: Any) -> bool:
        return type(model) is Transformer

    @classmethod
    def reaches(cls, model: Transformer) -> Level:
        return (
            "bounded" if model.config.positions in distances.names() and model.config.readout == "linear" else "tested"
        )

    @torch.no_grad()
    def prove(self, model: Transformer, extraction: Extraction) -> AttentionEvidence:
        machine = narrow(extraction.fine, Transducer)
        search = Search(model, machine)
        first, last = 1, 1
        while first <= search.max_length and search.is_proved(first, last):
            first, last = last + 1, min(2 * last, search.max_length)
        for _ in range(NUM_BISECTIONS if first <= search.max_length else 0):
            middle = (first + last) // 2
            if middle >= last:
                break
            first, last = (middle + 1, last) if search.is_proved(first, middle) else (first, middle)
        num_pieces = sum(result.num_pieces for result in search.results)
        if not num_pieces or search.blocks[-1][1] < MIN_LENGTH:
            raise Unproved(
                f"bounds on the model's attention do not prove its answers to all strings of up to {MIN_LENGTH} symbols"
            )
        self.sets = search.sets()
        return AttentionEvidence(
            num_blocks=len(search.blocks),
            num_pieces=num_pieces,
            logit_margin=finite_or_none(min(result.margin for result in search.results)),
            max_length=search.blocks[-1][1],
        )


class Search:
    """The blocks (ranges of lengths) that have a proof, and bounds on the attention masses of each block and layer."""

    def __init__(self, model: Transformer, machine: Transducer) -> None:
        self.model, self.layers = model, layers_of(model)
        self.pairs = [pairs_of(machine, is_first=index == 0) for index in range(len(self.layers))]
        if len(self.layers) > 1:
            _check_products(len(self.pairs[1].last), model.config.num_heads)
        self.max_length = distances.max_length_of(model.read_in.positions, MAX_LENGTH)
        self.first = self._heads(0, states_of_symbols(model, len(machine.symbols)), self.max_length)
        self.blocks: list[tuple[int, int]] = []
        self.masses: list[list[Masses]] = [[] for _ in self.layers]
        self.results: list[Halved] = []

    def is_proved(self, first: int, last: int) -> bool:
        """Return whether the block of lengths `first` to `last` has a proof; if so, store the block and its bounds."""
        block = Blocks(np.array([first]), np.array([last]))
        heads, paths = self.first
        by_layer = [mass_bounds(paths, block)]
        head = head_of(self.layers[0], heads, last)
        for index, layer in enumerate(self.layers[1:], 1):
            states = states_after(head, self._regions_up_to(index - 1, by_layer[-1]))
            heads, paths = self._heads(index, states, last)
            by_layer.append(mass_bounds(paths, block))
            head = head_of(layer, heads, last)
        result = halved(head, self.model.readout, _regions(self.pairs[-1], by_layer[-1], heads.states.low.shape[1]))
        if not result.margin > 0:
            return False
        self.blocks.append((first, last))
        self.results.append(result)
        for masses, bounds in zip(self.masses, by_layer, strict=True):
            masses.append(bounds)
        return True

    def _heads(self, index: int, states: Intervals, max_length: int) -> tuple[Heads, Paths]:
        heads, pairs = heads_of(self.model, index, states, max_length), self.pairs[index]
        _check_size(pairs, heads.scores.low.shape)
        return heads, paths_of(heads, pairs)

    def _regions_up_to(self, index: int, newest: Masses) -> Pieces:
        """Return bounds on a layer's masses over the newest block of lengths and all earlier blocks.

        Prefixes of a string may have any of these lengths. A key depends on the prefix that ends at its position.
        """
        all_masses = [*self.masses[index], newest]
        low, high = np.ones_like(newest.low[0]), np.zeros_like(newest.high[0])
        for masses in all_masses:
            exists = masses.exists[0]
            low[exists] = np.minimum(low[exists], masses.low[0, exists])
            high[exists] = np.maximum(high[exists], masses.high[0, exists])
        # No string of these lengths ends in a pair that does not exist, so no path uses its bounds. They may be any
        # finite bounds.
        exists = np.any([masses.exists[0] for masses in all_masses], axis=0)
        source = np.where(exists, np.arange(len(exists)), exists.argmax())
        last = self.pairs[index].last[source]
        arrays = (low[source], high[source], last, np.zeros_like(last), np.zeros_like(last))
        return Pieces(*map(torch.from_numpy, arrays))

    def sets(self) -> dict[str, torch.Tensor]:
        """Return the last length of each block, and bounds on attention masses.

        Each mass belongs to a block, a last symbol, a state, a head and a kind of positions.

        The names of the bounds contain the layer's number, except in the last layer. A kind is a symbol in the first
        layer, and a pair of a symbol and a state in later layers, even if no string ends in this pair.
        """
        sets = {"lengths": torch.tensor([last for _, last in self.blocks])}
        for index, (pairs, masses) in enumerate(zip(self.pairs, self.masses, strict=True)):
            machine, symbols, states, _, _ = pairs
            num_symbols, num_heads = len(machine.symbols), masses[0].low.shape[2]
            is_first, is_last = index == 0, index == len(self.layers) - 1
            kinds = np.arange(num_symbols) if is_first else symbols * machine.num_states + states
            num_kinds = num_symbols * (1 if is_first else machine.num_states)
            shape = (len(self.blocks), num_symbols, machine.num_states, num_heads, num_kinds)
            low, high = np.zeros(shape), np.ones(shape)
            for block, bounds in enumerate(masses):
                exists = bounds.exists[0]
                for end, own in ((low, bounds.low), (high, bounds.high)):
                    rows = end[block, symbols[exists], states[exists]]
                    rows[..., kinds] = own[0, exists]
                    end[block, symbols[exists], states[exists]] = rows
            number = "" if is_last else f".{index}"
            sets |= {f"low{number}": torch.from_numpy(low), f"high{number}": torch.from_numpy(high)}
        return sets


def _check_size(pairs: Pairs, shape: torch.Size) -> None:
    """Reject a machine and heads whose bounds would need too much memory."""
    num_kinds, _, num_heads, num_distances = shape
    numbers = len(pairs.states) * num_heads * num_kinds * 2
    if (largest := numbers * max(num_kinds * num_distances, pairs.machine.num_states)) > MAX_WEIGHTS:
        raise ValueError(
            f"model: expected at most {MAX_WEIGHTS:,} bounds on attention weights, got {largest:,}; choose a task with "
            "fewer states or symbols"
        )


def _check_products(num_kinds: int, num_heads: int) -> None:
    """Reject a machine if the products of queries with all pieces of all keys would need too much memory."""
    if (num_products := num_kinds * 4**NUM_ROUNDS * num_heads) > MAX_PRODUCTS:
        raise ValueError(
            f"model: expected at most {MAX_PRODUCTS:,} products of queries and keys for each kind of position, got "
            f"{num_products:,}; choose a task with fewer states or symbols"
        )


def _regions(pairs: Pairs, masses: Masses, num_inputs: int) -> Pieces:
    """Return boxes of masses for strings with answers: one for each pair and each piece of the last layer's inputs."""
    outputs = pairs.machine.outputs[pairs.states]
    graded = np.repeat(np.flatnonzero(masses.exists[0] & (outputs != IGNORE)), num_inputs)
    inputs = np.resize(np.arange(num_inputs), len(graded))
    arrays = (masses.low[0][graded], masses.high[0][graded], pairs.last[graded], inputs, outputs[graded])
    return Pieces(*map(torch.from_numpy, arrays))
