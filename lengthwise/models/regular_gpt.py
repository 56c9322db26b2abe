"""RegularGPT: one attention layer, applied at every level of a tree whose leaves are the symbols."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from pydantic import Field, model_validator
from torch import Tensor, nn

from lengthwise.conventions import PAD
from lengthwise.layers.tree_layers import BareLayer, MergeLayer, PostNormLayer, PreNormLayer
from lengthwise.models.base import MAX_WIDTH, MODELS, Depth, ModelConfig, Width
from lengthwise.models.capabilities import AnswersUpTo
from lengthwise.models.symbol_tree import SymbolTree
from lengthwise.ops.tree import LeftEdge, PadRule, Tree, TreeLayer
from lengthwise.ops.tree_attention import prefix_states, prefix_states_by_definition
from lengthwise.validation import check_divisor

MAX_CHUNK = 4096
MAX_LOWER_LEVELS = 16
"""The largest number of levels with their own chunk sizes."""


class RegularGPTConfig(ModelConfig):
    """Sizes of a RegularGPT: width D, heads H (a divisor of D), chunk size C, thickness K, and the kind of layer.

    - `variant`: the layer (see `RegularGPT`).
    - `hidden`: the total number of hidden units in the feed-forward blocks of a layer, by default 4 D.
    - `lower_chunk_sizes`: the chunk sizes of the lowest levels, from the symbols up, if they differ from C. For
      example, ``(4,)`` with C=2 first merges four symbols, and then always two states.
    - `left_edge`, for variant `"code"` with K >= 2: windows that begin before the string have pads there (`"pads"`), or
      fewer states, as in the published code (`"cut"`). With K = 1, both values give the same function.

    The settings `hidden`, `lower_chunk_sizes` and `left_edge` change a run's id only if they are set.
    """

    used_with = MappingProxyType({"left_edge": ("variant", ("code",))})

    d_model: Width = 64
    num_heads: Width = 8
    chunk_size: int = Field(2, ge=2, le=MAX_CHUNK)
    thickness: Depth = 1
    variant: Literal["merge", "paper", "code", "bare"] = "merge"
    hidden: int | None = Field(None, ge=1, le=MAX_WIDTH, exclude_if=lambda hidden: hidden is None)

    lower_chunk_sizes: tuple[Annotated[int, Field(ge=2, le=MAX_CHUNK)], ...] = Field(
        (), max_length=MAX_LOWER_LEVELS, exclude_if=lambda sizes: not sizes
    )

    left_edge: LeftEdge = Field("pads", exclude_if=lambda edge: edge == "pads")

    @model_validator(mode="after")
    def _layers_below_another_see_the_edge(self) -> "RegularGPTConfig":
        if self.left_edge == "cut" and self.thickness == 1:
            raise ValueError(
                "left_edge: expected 'pads' with thickness=1, where 'pads' and 'cut' give the same function, "
                "got 'cut'; leave left_edge out, or set thickness to 2 or more"
            )
        return self

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "RegularGPTConfig":
        check_divisor("num_heads", self.num_heads, self.d_model)
        return self

    @model_validator(mode="after")
    def _blocks_share_hidden_units(self) -> "RegularGPTConfig":
        if self.variant == "merge" and (self.hidden or 0) % 2:
            raise ValueError(
                f"hidden: expected an even number for variant merge, whose two feed-forward blocks have half of the "
                f"units each, got {self.hidden}; choose {(self.hidden or 0) + 1}"
            )
        return self


class _Variant(NamedTuple):
    layer: type[MergeLayer | PreNormLayer | PostNormLayer | BareLayer]
    pad_rule: PadRule = "merged"
    normed_readout: bool = True
    embedding_std: float = 1.0
    readout_std: float = 0.08


_VARIANTS = {
    "merge": _Variant(MergeLayer),
    "paper": _Variant(PreNormLayer, embedding_std=0.02, readout_std=0.02),
    "code": _Variant(PostNormLayer, "raw", normed_readout=False),
    "bare": _Variant(BareLayer, normed_readout=False),
}
"""The layer of each variant, its pad rule, and the initialization of its embedding and read-out."""


@MODELS.register("regular-gpt")
class RegularGPT(AnswersUpTo, SymbolTree):
    """A transformer with weight sharing, adaptive depth and sliding-dilated attention.

    The layer computes the state of a window from the states of its C parts, where C is the chunk size
    (`lengthwise.ops.tree_attention`). The state after max(1, ceil(log_C t)) levels gives the answer for the prefix of
    length t. Machines can be extracted only without `lower_chunk_sizes`. Variants:

    - `"merge"` (ours): a layer without a residual, whose output is normalized. This variant extrapolates.
    - `"paper"`: GPT-2's layer.
    - `"code"`: the authors' post-norm layer. At every level, positions before the string have the embedding of the pad.
      With thickness K = 1, the model computes the function of the published code. With K >= 2, the model computes this
      function if `left_edge` is `"cut"`.
    - `"bare"`: a layer without norms and residuals. `lengthwise.constructions` computes its weights for any finite
      machine.

    Source: Chi et al. (2023), sections 3.1-3.2.
    Differs from the source: pads are a learned symbol that may also be inside a string. Training with such pads teaches
        the net to ignore them. The default layer is `MergeLayer`. The lowest levels may have their own chunk sizes. The
        published code draws read-out weights from a normal distribution truncated at two standard deviations. Variant
        `"code"` draws these weights without truncation. By default, windows have pads at all positions before a string.
        The published code has pads only up to a full first chunk, and cuts off windows that reach farther back. If K >=
        2, this cut changes answers. Dropout is absent.
    """

    Config = RegularGPTConfig
    config: RegularGPTConfig
    default_preset: ClassVar[str] = "fast"
    readout: nn.Sequential

    def build(self, vocab_size: int, num_classes: int) -> None:
        config = self.config
        self._variant = _VARIANTS[config.variant]
        self.embedding = nn.Embedding(vocab_size + 1, config.d_model)
        self.layers = nn.ModuleList(
            self._variant.layer(
                d_model=config.d_model,
                num_heads=config.num_heads,
                # All levels share the layer, so it needs biases for the largest chunk.
                chunk_size=max((config.chunk_size, *config.lower_chunk_sizes)),
                hidden=config.hidden,
            )
            for _ in range(config.thickness)
        )
        self.readout = nn.Sequential(
            nn.LayerNorm(config.d_model) if self._variant.normed_readout else nn.Identity(),
            nn.Linear(config.d_model, num_classes),
        )

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again; row 0 of the embedding is the pad."""
        width = self.config.d_model
        for layer in self.layers:
            layer.reset_parameters(generator)  # type: ignore[operator]  # ModuleList forgets the type of its modules
        linear = self.readout[1]
        assert isinstance(linear, nn.Linear)
        nn.init.zeros_(linear.bias)
        if isinstance(self.readout[0], nn.LayerNorm):
            self.readout[0].reset_parameters()
        with torch.no_grad():
            if self.config.variant == "code":
                std = 0.02 * width**0.5  # the published code multiplies embeddings with deviation 0.02 by sqrt(D)
                nn.init.trunc_normal_(self.embedding.weight, std=std, a=-2 * std, b=2 * std, generator=generator)
                nn.init.normal_(self.embedding.weight[0], std=0.02, generator=generator)
                nn.init.trunc_normal_(linear.weight, std=width**-0.5, generator=generator)
            else:
                nn.init.normal_(self.embedding.weight, std=self._variant.embedding_std, generator=generator)
                nn.init.normal_(linear.weight, std=self._variant.readout_std, generator=generator)

    @property
    def hidden_matrices(self) -> Sequence[nn.Parameter]:
        """Return the projections and the feed-forward matrices of all layers."""
        return [linear.weight for layer in self.layers for linear in layer.linears]  # type: ignore[union-attr]

    @property
    def pad_block(self) -> int:
        """Return the chunk size of the lowest level. Blocks of this many inserted pads split no chunk."""
        return self.tree.chunk_size_at(0)

    @property
    def tree(self) -> Tree:
        """Return the leaves, layers and rules of the tree, for `lengthwise.ops.tree_attention`."""
        layers: list[TreeLayer] = list(self.layers)  # type: ignore[arg-type]  # ModuleList forgets the type of its modules
        return Tree(
            self.embedding.weight,
            layers,
            self.config.chunk_size,
            self._variant.pad_rule,
            self.config.lower_chunk_sizes,
            self.config.left_edge,
        )

    def forward_by_definition(self, inputs: Int64[Tensor, "B T"]) -> Float[Tensor, "B T Y"]:
        """Return the logits of `forward`, computed by `prefix_states_by_definition`; for short strings only."""
        return self.logits_of(prefix_states_by_definition(self.rows(inputs), self.tree))

    def forward_bounded(self, inputs: Int64[Tensor, "B T"], max_length: int) -> Float[Tensor, "B T Y"]:
        """Return the logits of `forward`, computed on strings that are padded to `max_length`.

        The states are computed by the masks of eq. (1) of Chi et al. (2023), or by `prefix_states` with the left edge
        `"cut"`.
        """
        ids = self.rows(inputs)
        # With one size for all lengths, one exported graph suffices. Answers do not depend on later symbols.
        filled = F.pad(ids, (0, max_length))[:, :max_length]
        # With a cut edge, the definition needs a pass for each prefix, so `prefix_states` is used. With strings of one
        # size, `prefix_states` also gives a single graph.
        states = prefix_states_by_definition if self.config.left_edge == "pads" else prefix_states
        positions = torch.arange(inputs.shape[1], device=inputs.device)
        return self.logits_of(states(filled, self.tree)).index_select(1, positions)

    def rows(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return the row of each symbol in the embedding; row 0 is the pad."""
        self.check_inputs(inputs, self.embedding.num_embeddings - 1)
        return inputs - PAD
