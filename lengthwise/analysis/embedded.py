"""Run a model on vectors in place of what it looks up for its symbols."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn


@contextmanager
def looking_up(embedding: nn.Embedding, embedded: Float[Tensor, "B T D"]) -> Iterator[None]:
    """Within it, an embedding gives these vectors, whatever its symbols: the next ones each time that it is read.

    Some models read a string in parts.
    """
    start = 0

    def replacement(_: nn.Module, inputs: tuple[Tensor], __: Tensor) -> Tensor:
        nonlocal start
        part = embedded[:, start : start + inputs[0].shape[-1]]
        start += part.shape[1]
        return part

    with embedding.register_forward_hook(replacement):
        yield
