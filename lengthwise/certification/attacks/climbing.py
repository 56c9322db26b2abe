"""Hill climbing: strings with small logit margins are changed, and strings with the smallest margins are kept."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.certification.attacks.board import MAX_SYMBOLS_PER_BATCH, Batch, Board
from lengthwise.certification.traces import with_rare_answers
from lengthwise.randomness import generator_for

POPULATION_SIZE = 64
"""The number of strings that are kept after each round. The next round makes as many changed copies."""

NUM_ROUNDS = 50
"""The number of rounds of changes."""

NUM_DRAWN_LENGTHS = 4
"""The number of evenly spaced lengths of the random strings with which hill climbing begins."""

NUM_DRAWN = 64
"""The number of strings that are drawn at each of the `NUM_DRAWN_LENGTHS` lengths."""

MAX_WINDOW = 8
"""The largest number of symbols in the window that a change repeats or leaves out.

Two kinds of change also repeat or replace the whole end of a string.
"""

MAX_REPETITIONS = 16
"""The largest number of times that one change repeats a part of a string."""

Word = tuple[int, ...]

Draw = Callable[[int], int]
"""A function that draws a whole number below its argument."""


def hill_climbing(board: Board) -> Iterator[Batch]:
    """Yield random strings and the strings in ``board.weakest``; then yield changed copies of strings in each round.

    The copies are made from the strings that have the smallest logit margins so far. After each batch,
    ``board.latest`` contains the smallest logit margin among the prefixes of each string.
    """
    generator = generator_for(board.seed, "attack", "hill climbing")

    def draw(limit: int) -> int:
        return int(torch.randint(limit, (), generator=generator))

    population: dict[Word, float] = {}
    strings = [*board.weakest, *_drawn(board, generator)]
    for _ in range(NUM_ROUNDS + 1):
        for part in _batches(strings, board.max_length):
            yield Batch(*_filled(part))
            for string, margin, index in zip(part, *(column.tolist() for column in board.latest), strict=True):
                if margin < torch.inf:
                    population[string[: index + 1]] = margin
        ordered = sorted((margin, string) for string, margin in population.items() if len(string) <= board.max_length)
        population = {string: margin for margin, string in ordered[:POPULATION_SIZE]}
        if not population:
            return
        parents = list(population)
        changed = [mutated(parents[draw(len(parents))], parents[draw(len(parents))], board, draw) for _ in parents]
        strings = [string for string in dict.fromkeys(changed) if string not in population]


def mutated(string: Word, other: Word, board: Board, draw: Draw) -> Word:
    """Return a copy of a string with one random change; the copy has from 1 to ``board.max_length`` symbols.

    One kind of change replaces the end of the string by the end of `other`.
    """
    num_symbols = len(board.task.symbols)
    start = draw(len(string))
    window = string[start : start + 1 + draw(MAX_WINDOW)]
    end = start + len(window)
    symbol = draw(num_symbols)
    changes = (
        lambda: (*string[:start], symbol, *string[start + 1 :]),
        lambda: (*string[:start], symbol, *string[start:]),
        lambda: string[:start] + string[end:],
        lambda: string[:end] + window * (1 + draw(MAX_REPETITIONS)) + string[end:],
        lambda: string + string[start:] + window * draw(MAX_REPETITIONS),
        lambda: string[:start] + other[draw(len(other)) :],
    )
    changed = changes[draw(len(changes))]()[: board.max_length]
    return changed or (symbol,)


def _drawn(board: Board, generator: torch.Generator) -> Iterator[Word]:
    """Yield random strings of a few lengths, including strings with rare answers (`with_rare_answers`)."""
    for part in range(1, NUM_DRAWN_LENGTHS + 1):
        length = max(1, board.max_length * part // NUM_DRAWN_LENGTHS)
        samples = torch.randint(len(board.task.symbols), (NUM_DRAWN, length), generator=generator)
        yield from map(tuple, with_rare_answers(board.machine, samples, generator).tolist())


def _batches(strings: list[Word], max_length: int) -> Iterator[list[Word]]:
    """Yield strings of similar lengths in groups of at most `MAX_SYMBOLS_PER_BATCH` symbols."""
    ordered = sorted((string for string in strings if len(string) <= max_length), key=len)
    while ordered:
        count = max(1, MAX_SYMBOLS_PER_BATCH // len(ordered[-1]))
        yield ordered[-count:]
        del ordered[-count:]


def _filled(strings: list[Word]) -> tuple[Int64[Tensor, "B T"], None, Int64[Tensor, " B"]]:
    """Return the fields of a batch: strings padded with symbol 0, None in place of tails, and unpadded lengths."""
    lengths = torch.tensor([len(string) for string in strings])
    longest = int(lengths.max())
    return torch.tensor([string + (0,) * (longest - len(string)) for string in strings]), None, lengths
