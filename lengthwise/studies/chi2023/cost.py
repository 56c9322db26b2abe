"""The cost of RegularGPT's attention and layers, compared with a causal Transformer: counts of operations.

If the chunk size is the length T of the string, there is a single level, at which each position attends to itself and
all earlier positions. This is a layer of a causal Transformer. The break-even ratio K / L is the ratio at which both
models cost the same. K is the thickness of RegularGPT (its number of layers for each level), and L is the number of
Transformer layers.
"""

import math

from lengthwise.ops.tree import num_levels


def attention_pairs(length: int, chunk_size: int) -> int:
    """Return the number of pairs of a query and a key in all levels of a RegularGPT with one layer for each level.

    The number is ``sum_l sum_m min(C, floor(m / C^l) + 1)`` over the levels l and the positions m, both from 0. C is
    the chunk size. Pads before the start of the string do not count.

    Example:
        >>> attention_pairs(4, 4), attention_pairs(4, 2)
        (10, 13)
    """
    strides = [chunk_size**level for level in range(num_levels(length, chunk_size))]
    return sum(min(chunk_size, position // stride + 1) for stride in strides for position in range(length))


def multiplications(length: int, chunk_size: int, d_model: int) -> int:
    """Return the number of multiplications of a RegularGPT of width D with one layer for each level.

    Each pair of a query and a key takes 2 D multiplications. Each position at each level takes 12 D^2: 4 D^2 for the
    projections to queries, keys, values and output, and 8 D^2 for a feed-forward block of 4 D hidden units.
    """
    levels = num_levels(length, chunk_size)
    return 2 * d_model * attention_pairs(length, chunk_size) + 12 * d_model**2 * length * levels


def attention_break_even(length: int, chunk_size: int) -> float:
    """Return the ratio K / L at which the attention of RegularGPT costs as much as the attention of a Transformer.

    K is RegularGPT's number of layers for each level, and L is the number of Transformer layers.
    """
    return attention_pairs(length, length) / attention_pairs(length, chunk_size)


def layer_break_even(length: int, chunk_size: int, d_model: int) -> float:
    """Return the ratio K / L at which whole layers of RegularGPT cost as much as whole layers of a Transformer.

    K is RegularGPT's number of layers for each level, and L is the number of Transformer layers.
    """
    return multiplications(length, length, d_model) / multiplications(length, chunk_size, d_model)


def published_break_even(length: int, chunk_size: int) -> float:
    """Return the break-even ratio K / L for attention, by the source's formula ``T C K log_C T < T^2 L``.

    T is the length and C the chunk size. K is RegularGPT's number of layers for each level, and L is the number of
    Transformer layers. The number of levels log_C T is not rounded.

    Example:
        >>> round(published_break_even(512, 128), 2)
        3.11

    Source: Chi et al. (2023), section 3.4.
    """
    if length < 2 or chunk_size < 2:
        raise ValueError(
            f"length, chunk_size: expected two numbers of at least 2, got {length} and {chunk_size}; a merge needs two "
            "symbols, so pass larger numbers"
        )
    return length / (chunk_size * math.log(length, chunk_size))
