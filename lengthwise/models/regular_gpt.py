"""RegularGPT: one attention layer applied log_C T times over a tree whose leaves are the symbols."""

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
from lengthwise.models.base import MAX_WIDTH, MODELS, Depth, ModelConfig, Width, check_divides_width
from lengthwise.models.capabilities import AnswersUpTo
from lengthwise.models.symbol_tree import SymbolTree
from lengthwise.ops.tree import LeftEdge, PadRule, Tree, TreeLayer
from lengthwise.ops.tree_attention import masked_states, prefix_states

MAX_CHUNK = 4096
MAX_LOWER_LEVELS = 16
"""Levels with a chunk size of their own."""


class RegularGPTConfig(ModelConfig):
    """Sizes of a RegularGPT: width D, heads H (a divisor of D), chunk size C, thickness K, and which layer it uses.

    `hidden` counts the hidden units of a layer's feed-forward blocks together, by default 4 D. `lower_chunk_sizes` has
    the chunk sizes of the lowest levels, from the symbols up, where they are not C: ``(4,)`` with C=2 merges four
    symbols, and then two states at a time. `left_edge`, of variant `"code"` with K >= 2: windows that reach before the
    string have pads there (`"pads"`), or fewer states, as in the published code (`"cut"`). With K = 1 both are one
    function. `hidden`, `lower_chunk_sizes` and `left_edge` are part of a run's id only where they are given.
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
                "left_edge: expected 'pads' with thickness=1, where 'cut' is the same function, got 'cut'; leave it "
                "out or give a thickness of 2 or more"
            )
        return self

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "RegularGPTConfig":
        check_divides_width("num_heads", self.num_heads, self.d_model)
        return self

    @model_validator(mode="after")
    def _blocks_share_hidden_units(self) -> "RegularGPTConfig":
        if self.variant == "merge" and (self.hidden or 0) % 2:
            raise ValueError(
                f"hidden: expected an even number for variant merge, got {self.hidden}; its two feed-forward blocks "
                "have half each"
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


@MODELS.register("regular-gpt")
class RegularGPT(AnswersUpTo, SymbolTree):
    """A transformer with weight sharing, adaptive depth and sliding-dilated attention.

    The state of a window is the layer's value on the states of its C parts (`lengthwise.ops.tree_attention`); the
    read-out of prefix t sees the state after max(1, ceil(log_C t)) levels. Variants: `"merge"` (ours: no residual,
    normed output; the one that extrapolates), `"paper"` (GPT-2's layer), `"code"` (the authors' post-norm layer, whose
    pads are put in raw again at every level), `"bare"` (a layer without normalization and residual, whose weights
    `lengthwise.constructions` writes down for any finite machine). Where `lower_chunk_sizes` are given, no machine can
    be read off.

    With K = 1 variant `"code"` is the published code's function, and with K >= 2 it is so if `left_edge` is `"cut"`.

    Source: Chi et al. (2023), sections 3.1-3.2.
    Differs from the source: pads are a learned symbol that may also stand inside a string (training teaches the
    net that it is the identity); the default layer is `MergeLayer`; the lowest levels may have chunk sizes of their
    own; weights of the read-out of variant `"code"` begin normal, there cut at two deviations. By default windows
    have pads at all places before a string; the published code pads the first chunk alone and cuts windows, which
    changes answers if K >= 2.
    """

    Config = RegularGPTConfig
    config: RegularGPTConfig
    default_preset: ClassVar[str] = "fast"
    readout: nn.Sequential

    def __init__(
        self, config: RegularGPTConfig, *, vocab_size: int, num_classes: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self._variant = _VARIANTS[config.variant]
        self.embedding = nn.Embedding(vocab_size + 1, config.d_model)
        self.layers = nn.ModuleList(
            self._variant.layer(
                d_model=config.d_model,
                num_heads=config.num_heads,
                chunk_size=max((config.chunk_size, *config.lower_chunk_sizes)),
                hidden=config.hidden,
            )
            for _ in range(config.thickness)
        )
        self.readout = nn.Sequential(
            nn.LayerNorm(config.d_model) if self._variant.normed_readout else nn.Identity(),
            nn.Linear(config.d_model, num_classes),
        )
        self.reset_parameters(generator or torch.Generator())

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
                std = 0.02 * width**0.5  # the code multiplies its embeddings, drawn with sd 0.02, by sqrt(D)
                nn.init.trunc_normal_(self.embedding.weight, std=std, a=-2 * std, b=2 * std, generator=generator)
                nn.init.normal_(self.embedding.weight[0], std=0.02, generator=generator)
                nn.init.trunc_normal_(linear.weight, std=width**-0.5, generator=generator)
            else:
                nn.init.normal_(self.embedding.weight, std=self._variant.embedding_std, generator=generator)
                nn.init.normal_(linear.weight, std=self._variant.readout_std, generator=generator)

    @property
    def hidden_matrices(self) -> Sequence[nn.Parameter]:
        """The projections and the feed-forward matrices of all layers."""
        return [linear.weight for layer in self.layers for linear in layer.linears]  # type: ignore[union-attr]

    @property
    def pad_block(self) -> int:
        """The chunk size of the lowest level: pads keep its chunks whole."""
        return self.tree.chunk_size_at(0)

    @property
    def tree(self) -> Tree:
        """The function that the parameters stand for, as `lengthwise.ops.tree_attention` takes it."""
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
        """The same numbers as `forward`, by the masked definition of eq. (1); for small T."""
        logits: Tensor = self.readout(masked_states(self.rows(inputs), self.tree))
        return logits

    def forward_up_to(self, inputs: Int64[Tensor, "B T"], max_length: int) -> Float[Tensor, "B T Y"]:
        """By the masked definition of strings filled up to the longest: no answer looks at a later symbol."""
        ids = self.rows(inputs)
        filled = F.pad(ids, (0, max_length))[:, :max_length]  # as many whatever the length: one graph
        # With a cut edge the definition is a pass for each prefix; the other form also has one graph for all lengths.
        states = masked_states if self.config.left_edge == "pads" else prefix_states
        logits: Tensor = self.readout(states(filled, self.tree))
        return logits.index_select(1, torch.arange(inputs.shape[1], device=inputs.device))

    def rows(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Rows of the embedding: 0 for the pad, then the symbols."""
        self.check_inputs(inputs, self.embedding.num_embeddings - 1)
        return inputs - PAD
