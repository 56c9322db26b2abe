"""Replacement of the embeddings of a model's symbols by given vectors."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn


@contextmanager
def looking_up(embedding: nn.Embedding, embedded: Float[Tensor, "B T D"]) -> Iterator[None]:
    """Make an embedding return the vectors `embedded` inside the `with` block, whatever symbols it is given.

    Some models read a string in parts, and so call their embedding several times. Each call returns the vectors of the
    next positions.
    """
    start = 0

    def replacement(_: nn.Module, inputs: tuple[Tensor], __: Tensor) -> Tensor:
        nonlocal start
        part = embedded[:, start : start + inputs[0].shape[-1]]
        start += part.shape[1]
        return part

    with embedding.register_forward_hook(replacement):
        yield
