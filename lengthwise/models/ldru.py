"""The log-depth recurrent unit: a learned operator that merges pairs of states, level by level."""

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.conventions import PAD
from lengthwise.layers.initialization import draw_truncated
from lengthwise.layers.log_depth import LogDepthLayer, Operator
from lengthwise.layers.tree_layers import FeedForward
from lengthwise.models.base import MODELS, ModelConfig, Width
from lengthwise.models.symbol_tree import SymbolTree
from lengthwise.ops.tree import Perturbation, Tree, num_levels


class LDRUConfig(ModelConfig):
    """The settings of an `LDRU`: width D, and the operator that merges two states (`lengthwise.layers.log_depth`)."""

    d_model: Width = 64
    operator: Operator = "mlp"


@MODELS.register("ldru")
class LDRU(SymbolTree):
    """A balanced tree over the symbols, in which the same learned operator merges two states at every node.

    The leaf of a symbol with embedding e is h + W'_2 ReLU(W'_1 h), where h = LayerNorm(e), and W'_1 and W'_2 are
    learned matrices. `LogDepthLayer` computes the state of a node from its two children. States at positions before the
    string are zeros at every level. The answer for the prefix of length t is a linear map of the state after max(1,
    ceil(log_2 t)) levels.

    Source: Pert, Alrajeh and Russo (2026), on log-depth recurrent units (arXiv 2605.26035), by its code's equations.
    Differs from the source: windows are aligned to the right end of a string, so pads before a string do not change the
        string's merges. For lengths that are powers of two, the alignment makes no difference. A single symbol is
        merged once with zeros. Only nodes that an answer needs are computed, for all prefixes at once. Pads may also be
        inside strings, and training can insert them as for RegularGPT. Dropout (0.25 there), stacks of trees, the
        operator GRC, and the penalty on associativity for list operations are missing.
    """

    Config = LDRUConfig
    config: LDRUConfig
    default_preset: ClassVar[str] = "fast"
    readout: nn.Linear

    def build(self, vocab_size: int, num_classes: int) -> None:
        config = self.config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        self.leaf_norm = nn.LayerNorm(config.d_model)
        self.leaf_feed_forward = FeedForward(config.d_model, 4 * config.d_model)
        self.layer = LogDepthLayer(d_model=config.d_model, operator=config.operator)
        self.readout = nn.Linear(config.d_model, num_classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw embeddings and maps from truncated normal distributions.

        The standard deviation is 0.02 for embeddings, which the leaf norm scales up. It is 1 / sqrt(n) for a map of n
        inputs in the leaves or the read-out. `LogDepthLayer` draws its own parameters.
        """
        nn.init.trunc_normal_(self.embedding.weight, std=0.02, a=-0.04, b=0.04, generator=generator)
        self.leaf_norm.reset_parameters()
        self.layer.reset_parameters(generator)
        for linear in (self.leaf_feed_forward.widen, self.leaf_feed_forward.narrow, self.readout):
            draw_truncated(linear, linear.in_features**-0.5, generator)

    @property
    def hidden_matrices(self) -> Sequence[nn.Parameter]:
        """Return the matrices of the merge operator and of the feed-forward blocks of leaves and merges."""
        modules = [*self.layer.modules(), *self.leaf_feed_forward.modules()]
        return [module.get_parameter("weight") for module in modules if isinstance(module, nn.Linear)]

    @property
    def pad_block(self) -> int:
        """Return 2, the size of a chunk: training inserts pads in whole chunks, so all other chunks stay unchanged."""
        return 2

    @property
    def tree(self) -> Tree:
        """Return the leaves and the layer of the tree; the leaf of the pad is a vector of zeros."""
        normed = self.leaf_norm(self.embedding.weight)
        leaves = normed + self.leaf_feed_forward(normed, F.relu)
        return Tree(torch.cat([torch.zeros_like(leaves[:1]), leaves]), [self.layer], 2)

    def perturbed(self, perturb: Perturbation) -> "LDRU":
        """Return a copy of the model that applies `perturb` to its states, except to zeros, which mean "no symbol"."""

        def of_symbols(states: Tensor) -> Tensor:
            return torch.where((states != 0).any(-1, keepdim=True), perturb(states), states)

        return super().perturbed(of_symbols)

    def forward_by_definition(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        """Return the logits of `forward`, computed prefix by prefix: zeros are added in front, and pairs are merged."""
        leaves = self.tree.leaves[self.rows(inputs)]
        answers = []
        for end in range(1, inputs.shape[1] + 1):
            levels = num_levels(end, 2)
            states = F.pad(leaves[:, :end], (0, 0, 2**levels - end, 0))
            for _ in range(levels):
                states = self.layer.merge(states[:, ::2], states[:, 1::2])
            answers.append(self.readout(states[:, 0]))
        return torch.stack(answers, 1)

    def rows(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the row of each symbol among the leaves; row 0 is the pad."""
        self.check_inputs(inputs, self.embedding.num_embeddings)
        return inputs - PAD
