"""The agreement of an exported graph with its model, on random strings."""

from collections.abc import Callable
from decimal import ROUND_UP, Context

import numpy as np
import torch

from lengthwise.models.base import SequenceModel, eval_mode
from lengthwise.randomness import generator_for

NUM_STRINGS, LENGTH = 1_000, 40

MAX_DIFFERENCE = 1e-3
"""The largest allowed difference of logits, relative to the largest logit. Rounding causes much smaller differences."""

MAX_PAIRS = 4_000_000
"""The largest number of pairs of positions in a batch. Attention that applies a mask keeps all pairs in memory."""


def agreement(
    model: SequenceModel, run: Callable[[np.ndarray], np.ndarray], num_symbols: int, max_length: int | None = None
) -> str:
    """Return a sentence with the largest difference of logits between a graph and its model, on 1,000 strings.

    Raises:
        RuntimeError: the logits differ by more than rounding.
    """
    length = min(LENGTH, max_length or LENGTH)
    generator = generator_for(0, "exported strings")
    strings = torch.randint(num_symbols, (NUM_STRINGS, length), generator=generator)
    size = max(1, MAX_PAIRS // max(length, max_length or 0) ** 2)
    largest, scale = 0.0, 0.0
    for batch in strings.split(size):
        with eval_mode(model):
            expected = model(batch).numpy()
        got = run(batch.numpy())
        if got.shape != expected.shape:
            raise RuntimeError(f"graph: expected logits of shape {expected.shape}, got {got.shape}; export again")
        finite = np.isfinite(expected)
        if not np.array_equal(finite, np.isfinite(got)):
            largest = np.inf
        if finite.any():
            largest = max(largest, float(np.abs(got - expected)[finite].max()))
            scale = max(scale, float(np.abs(expected[finite]).max()))
    if not largest <= MAX_DIFFERENCE * scale:
        raise RuntimeError(
            f"graph: expected the model's logits, got logits that differ by up to {largest:.2g}; nothing was written"
        )
    # The bound is rounded up, because the sentence claims that the logits are within this bound.
    bound = float(Context(prec=1, rounding=ROUND_UP).create_decimal_from_float(largest))
    return f"logits within {bound:.1g} of torch's, on {NUM_STRINGS:,} strings of {length} symbols"
