"""A read-out that shares the embedding: a class's logit is the inner product of the state and the class's embedding."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.validation import check_kind, whole_number


class TiedReadout(nn.Module):
    """Logits x E^T, where E is the first Y rows of an embedding. The module has no bias and no parameters of its own.

    Row v represents symbol v as an input and class v as an answer. In a language model, symbols and classes are the
    same. The embedding needs `num_rows` rows, enough for all symbols and all classes.

    Source: Press and Wolf, "Using the output embedding to improve language models" (EACL 2017); Radford et al.,
        "Language models are unsupervised multitask learners" (2019), and their code.
    Differs from the source: only if symbols and classes differ.
    """

    def __init__(self, embedding: nn.Embedding, num_classes: int) -> None:
        super().__init__()
        check_kind("embedding", embedding, nn.Embedding, "an nn.Embedding")
        whole_number("num_classes", num_classes, 1, embedding.num_embeddings)
        # Inside a tuple, the embedding is not a submodule. So its matrix is listed, saved and optimized only once.
        self._tied = (embedding,)
        self.num_classes = num_classes

    @staticmethod
    def num_rows(vocab_size: int, num_classes: int) -> int:
        """Return the number of rows that the embedding needs: enough for all symbols and for all classes."""
        return max(vocab_size, num_classes)

    def forward(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N Y"]:
        (embedding,) = self._tied
        return F.linear(states, embedding.weight[: self.num_classes])
