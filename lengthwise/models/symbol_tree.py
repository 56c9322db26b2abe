"""The common base of models that read strings as trees over their symbols."""

from abc import abstractmethod
from collections.abc import Sequence

from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.models.base import SymbolModel, TreeModel
from lengthwise.models.capabilities import AcceptsNoise, AcceptsPads, HasHiddenMatrices, ShowsNodes
from lengthwise.ops.tree_attention import last_state, last_states, prefix_states


class SymbolTree(AcceptsPads, AcceptsNoise, HasHiddenMatrices, ShowsNodes, SymbolModel, TreeModel):
    """A tree model that answers prefixes or whole strings; each symbol and the pad have a leaf in a table."""

    @abstractmethod
    def rows(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Check the inputs, and return the row of each leaf; row 0 is the pad."""

    def forward(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        return self.logits_of(prefix_states(self.rows(inputs), self.tree, self.perturb))

    def last_state(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        return last_state(self.rows(inputs), self.tree, self.perturb)

    def last_states(self, batches: Sequence[Int64[Tensor, "_ _"]]) -> list[Float[Tensor, "_ D"]]:
        """Return `last_state` of several batches; their trees are computed together, level by level."""
        return last_states([self.rows(inputs) for inputs in batches], self.tree, self.perturb, observe=self.observe)
