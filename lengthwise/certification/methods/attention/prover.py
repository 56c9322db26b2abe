"""The largest length up to which a transformer of one layer is right on every string, by bounds on its attention."""

from typing import Any

import numpy as np
import torch

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.methods.attention.evidence import AttentionEvidence
from lengthwise.certification.methods.attention.masses import Blocks, Masses, Paths, mass_bounds, paths_of
from lengthwise.certification.methods.attention.pieces import Halved, Pieces, halved, head_of
from lengthwise.certification.methods.attention.scores import POSITIONS, heads_of
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved, finite_or_none
from lengthwise.certification.parts import Level
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.models.transformer import Transformer

MAX_LENGTH = 4_096
"""The largest length that is tried, in symbols. The work of prover and checker is proportional to it."""

MIN_LENGTH = 10
"""The smallest length that counts as a proof, in symbols. `certify` reads all strings of up to 12 symbols over two
symbols, but only up to 7 over three."""

NUM_BISECTIONS = 4
"""The number of bisections of the first block of lengths that has no proof."""

MAX_WEIGHTS = 1 << 24
"""The largest number of bounds on exponentials, and of sums along paths."""


@PROVERS.register("attention")
class AttentionProver(Prover):
    """A search for bounds on the masses that attention gives to symbols, one block of lengths after another.

    A head's output at the last position is the sum of the values of all symbols, each times its mass: the sum of the
    attention weights of its positions. If a score depends on two symbols and their distance alone, the largest mass
    over all strings of a regular language is a longest path (`masses`). The masses of all strings that end in the same
    state, with the same symbol, then lie in a box. The box is halved until the right answer leads in each piece.

    Source: ours.
    """

    reader = None

    @classmethod
    def applies_to(cls, model: Any) -> bool:
        return type(model) is Transformer and model.config.num_layers == 1

    @classmethod
    def reaches(cls, model: Transformer) -> Level:
        names = [encoding.name for encoding in POSITIONS]
        return "bounded" if model.config.positions in names and model.config.readout == "linear" else "tested"

    @torch.no_grad()
    def prove(self, model: Transformer, extraction: Extraction) -> AttentionEvidence:
        machine = extraction.fine
        assert isinstance(machine, Transducer)
        heads = heads_of(model, len(machine.symbols), MAX_LENGTH)
        _check_size(machine, heads.scores.low.shape)
        paths = paths_of(heads, machine)
        blocks: list[tuple[int, int]] = []
        masses: list[Masses] = []
        pieces: list[Halved] = []

        def is_proved(first: int, last: int) -> bool:
            """Try one block of lengths, and keep its bounds if it has a proof."""
            bounds = mass_bounds(paths, Blocks(np.array([first]), np.array([last])))
            result = halved(head_of(model, heads, last), _regions(paths, bounds))
            if not result.margin > 0:
                return False
            blocks.append((first, last))
            masses.append(bounds)
            pieces.append(result)
            return True

        first, last = 1, 1
        while first <= MAX_LENGTH and is_proved(first, last):
            first, last = last + 1, min(2 * last, MAX_LENGTH)
        for _ in range(NUM_BISECTIONS if first <= MAX_LENGTH else 0):
            middle = (first + last) // 2
            if middle >= last:
                break
            first, last = (middle + 1, last) if is_proved(first, middle) else (first, middle)
        num_pieces = sum(result.num_pieces for result in pieces)
        if not num_pieces or blocks[-1][1] < MIN_LENGTH:
            raise Unproved(
                f"bounds on its attention do not show the right answer to all strings of up to {MIN_LENGTH} symbols"
            )
        self.sets = _sets(machine, paths, masses, blocks)
        return AttentionEvidence(
            num_blocks=len(blocks),
            num_pieces=num_pieces,
            logit_margin=finite_or_none(min(result.margin for result in pieces)),
            max_length=blocks[-1][1],
        )


def _check_size(machine: Transducer, shape: torch.Size) -> None:
    """Reject a machine and heads whose bounds would need too much memory."""
    num_symbols, _, num_heads, num_distances = shape
    numbers = num_symbols * len(np.unique(machine.semiautomaton.table)) * num_heads * num_symbols * 2
    if (largest := numbers * max(num_symbols * num_distances, machine.num_states)) > MAX_WEIGHTS:
        raise ValueError(
            f"model: expected at most {MAX_WEIGHTS:,} bounds of its attention along paths of the task's machine, got "
            f"up to {largest:,}; a task with fewer states or symbols needs fewer"
        )


def _regions(paths: Paths, masses: Masses) -> Pieces:
    """Return the boxes of masses in which graded strings end, for bounds of one block."""
    outputs = paths.machine.outputs[paths.states]
    graded = masses.exists[0] & (outputs != IGNORE)
    arrays = (masses.low[0], masses.high[0], paths.symbols, outputs)
    return Pieces(*(torch.from_numpy(array[graded]) for array in arrays))


def _sets(
    machine: Transducer, paths: Paths, masses: list[Masses], blocks: list[tuple[int, int]]
) -> dict[str, torch.Tensor]:
    """Return the last length of each block, and bounds for each block, last symbol, state, head and symbol."""
    num_heads, num_symbols = masses[0].low.shape[2:]
    shape = (len(blocks), num_symbols, machine.num_states, num_heads, num_symbols)
    low, high = np.zeros(shape), np.ones(shape)
    for index, bounds in enumerate(masses):
        exists = bounds.exists[0]
        low[index, paths.symbols[exists], paths.states[exists]] = bounds.low[0, exists]
        high[index, paths.symbols[exists], paths.states[exists]] = bounds.high[0, exists]
    return {
        "lengths": torch.tensor([last for _, last in blocks]),
        "low": torch.from_numpy(low),
        "high": torch.from_numpy(high),
    }
