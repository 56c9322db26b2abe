"""A read-out by the embedding: the logit of a class is the product with the vector of its symbol."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class TiedReadout(nn.Module):
    """Logits x E^T for the first Y rows E of an embedding, without a bias and without parameters of the module itself.

    Row v represents symbol v as an input and class v as an answer, which are the same in a language model. The
    embedding needs `num_rows` rows, which is the larger of the numbers of symbols and classes.

    Source: Press and Wolf, "Using the output embedding to improve language models" (EACL 2017); Radford et al.,
        "Language models are unsupervised multitask learners" (2019), and their code.
    Differs from the source: in nothing, if symbols are classes.
    """

    def __init__(self, embedding: nn.Embedding, num_classes: int) -> None:
        super().__init__()
        # Inside a tuple it is not a submodule, so that its matrix is listed, saved and optimized only once.
        self._tied = (embedding,)
        self.num_classes = num_classes

    @staticmethod
    def num_rows(vocab_size: int, num_classes: int) -> int:
        """Return the number of rows of the embedding: one for each symbol and each class."""
        return max(vocab_size, num_classes)

    def forward(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N Y"]:
        (embedding,) = self._tied
        return F.linear(states, embedding.weight[: self.num_classes])
