"""Runs of a model on given vectors instead of the embeddings of its symbols."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn


@contextmanager
def looking_up(embedding: nn.Embedding, embedded: Float[Tensor, "B T D"]) -> Iterator[None]:
    """Make an embedding return these vectors for any symbols, within the block; each call returns the next positions.

    Some models read a string in parts, and so call their embedding several times.
    """
    start = 0

    def replacement(_: nn.Module, inputs: tuple[Tensor], __: Tensor) -> Tensor:
        nonlocal start
        part = embedded[:, start : start + inputs[0].shape[-1]]
        start += part.shape[1]
        return part

    with embedding.register_forward_hook(replacement):
        yield
