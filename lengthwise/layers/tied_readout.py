"""A read-out that is the embedding again: the logit of a class is the product with the vector of its symbol."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class TiedReadout(nn.Module):
    """Logits x E^T for the first Y rows E of an embedding, without a bias; the module has no parameters of its own.

    Row v stands for symbol v where it is read, and for class v where it is answered: in a language model these are the
    same. The embedding needs `num_rows` rows, which are more than symbols where there are more classes.

    Source: Press and Wolf, "Using the output embedding to improve language models" (EACL 2017); Radford et al.,
        "Language models are unsupervised multitask learners" (2019), and their code.
    Differs from the source: in nothing, where symbols are classes.
    """

    def __init__(self, embedding: nn.Embedding, num_classes: int) -> None:
        super().__init__()
        # In a tuple it is no submodule: its matrix is listed, saved and moved by an optimizer once.
        self._tied = (embedding,)
        self.num_classes = num_classes

    @staticmethod
    def num_rows(vocab_size: int, num_classes: int) -> int:
        """Of the embedding: one for each symbol and each class."""
        return max(vocab_size, num_classes)

    def forward(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N Y"]:
        (embedding,) = self._tied
        return F.linear(states, embedding.weight[: self.num_classes])
