"""The log-depth recurrent unit: a learned operator that merges states two by two, level by level."""

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
from lengthwise.models.capabilities import Perturbation
from lengthwise.models.symbol_tree import SymbolTree
from lengthwise.ops.tree import Tree, num_levels


class LDRUConfig(ModelConfig):
    """Width D of a log-depth recurrent unit, and its operator on two states (`lengthwise.layers.log_depth`)."""

    d_model: Width = 64
    operator: Operator = "mlp"


@MODELS.register("ldru")
class LDRU(SymbolTree):
    """A balanced tree over the symbols, in which one learned operator merges two states at every node.

    With e the embedding of a symbol, its leaf is h + W'_2 ReLU(W'_1 h), h = LayerNorm(e). `LogDepthLayer` computes the
    state of a node from its two parts. Positions before the string are zeros, at every level. The answer of prefix t is
    a linear map of the state after max(1, ceil(log_2 t)) levels.

    Source: Pert, Alrajeh and Russo (2026), on log-depth recurrent units (arXiv 2605.26035), by its code's equations.
    Differs from the source: windows begin at the right end, so that a string is merged alike whatever precedes it
        (the same if its length is a power of two). One symbol is merged once with zeros. Only nodes that an answer
        needs are computed, for all prefixes at once. Pads may also be inside strings, which training can use as for
        RegularGPT. Dropout (0.25 there), stacks of trees, the operator GRC and the penalty on
        associativity, which its list operations have, are missing.
    """

    Config = LDRUConfig
    config: LDRUConfig
    default_preset: ClassVar[str] = "fast"
    readout: nn.Linear

    def __init__(
        self, config: LDRUConfig, *, vocab_size: int, num_classes: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        self.leaf_norm = nn.LayerNorm(config.d_model)
        self.leaf_feed_forward = FeedForward(config.d_model, 4 * config.d_model)
        self.layer = LogDepthLayer(d_model=config.d_model, operator=config.operator)
        self.readout = nn.Linear(config.d_model, num_classes)
        self.reset_parameters(generator or torch.Generator())

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw embeddings with deviation 0.02, which the norm of leaves scales up, and other maps by their inputs."""
        nn.init.trunc_normal_(self.embedding.weight, std=0.02, a=-0.04, b=0.04, generator=generator)
        self.leaf_norm.reset_parameters()
        self.layer.reset_parameters(generator)
        for linear in (self.leaf_feed_forward.widen, self.leaf_feed_forward.narrow, self.readout):
            draw_truncated(linear, linear.in_features**-0.5, generator)

    @property
    def hidden_matrices(self) -> Sequence[nn.Parameter]:
        """Return the matrices of the operator and of both feed-forward blocks."""
        modules = [*self.layer.modules(), *self.leaf_feed_forward.modules()]
        return [module.get_parameter("weight") for module in modules if isinstance(module, nn.Linear)]

    @property
    def pad_block(self) -> int:
        """Return 2, the size of a chunk, so that pads keep chunks whole."""
        return 2

    @property
    def tree(self) -> Tree:
        """Return the function of the parameters as a tree; the pad's leaf is zeros."""
        normed = self.leaf_norm(self.embedding.weight)
        leaves = normed + self.leaf_feed_forward(normed, F.relu)
        return Tree(torch.cat([torch.zeros_like(leaves[:1]), leaves]), [self.layer], 2)

    def perturbed(self, perturb: Perturbation) -> "LDRU":
        """Return this model with `perturb` applied to all states but zeros, since a pad must stay without noise."""

        def of_symbols(states: Tensor) -> Tensor:
            return torch.where((states != 0).any(-1, keepdim=True), perturb(states), states)

        return super().perturbed(of_symbols)

    def forward_by_definition(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        """Return `forward`, computed prefix by prefix: zeros fill up to a power of two, and pairs are merged."""
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
        """Return rows of the leaves: 0 for the pad, then the symbols."""
        self.check_inputs(inputs, self.embedding.num_embeddings)
        return inputs - PAD
