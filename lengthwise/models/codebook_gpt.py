"""A RegularGPT whose states are rounded to finitely many codes, so its merges form a finite table."""

from types import MappingProxyType
from typing import Any, Literal

import torch
from pydantic import Field, model_validator

from lengthwise.layers.codebook import Codebook, QuantizingLayer
from lengthwise.models.base import MODELS
from lengthwise.models.capabilities import QuantizesStates
from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig
from lengthwise.ops.tree import Tree

MAX_ENTRIES = 300_000
"""The largest number of entries in the table of all merges of codes, because all entries may have to be enumerated."""


class CodebookGPTConfig(RegularGPTConfig):
    """The settings of a `CodebookGPT`, which is a RegularGPT of variant merge and thickness 1 with a search for codes.

    The first search for codes comes after the fraction `quantize_after` of all training steps. Further searches follow
    about every 100 steps, until a search finds classes such that every merge of their states gives a state in one of
    these classes (`lengthwise.training.quantization`). The net must have settled before the first search, because the
    codes of a net that still changes are soon wrong.
    """

    # Empty, because the rule of the parent class concerns a setting that has only one value here.
    used_with = MappingProxyType({})
    other_effects = MappingProxyType(
        {
            "quantize_after": "decides when training begins to search for codes",
            "max_codes": "limits the codes that training may find",
        }
    )

    variant: Literal["merge"] = "merge"
    thickness: Literal[1] = 1
    left_edge: Literal["pads"] = Field("pads", exclude_if=lambda edge: edge == "pads")
    max_codes: int = Field(64, ge=1, le=MAX_ENTRIES)
    quantize_after: float = Field(0.9, ge=0, lt=1)

    @model_validator(mode="after")
    def _merges_are_one_table(self) -> "CodebookGPTConfig":
        if self.lower_chunk_sizes:
            raise ValueError(
                f"lower_chunk_sizes: expected no value for a codebook-gpt, whose merges all use one table, got "
                f"{self.lower_chunk_sizes}; leave lower_chunk_sizes out, or use a regular-gpt"
            )
        return self

    @model_validator(mode="after")
    def _table_of_merges_is_small(self) -> "CodebookGPTConfig":
        if self.max_codes**self.chunk_size > MAX_ENTRIES:
            maximum = int(MAX_ENTRIES ** (1 / self.chunk_size))
            raise ValueError(
                f"max_codes: expected at most {maximum} codes for chunks of {self.chunk_size}, got {self.max_codes}; "
                f"lower max_codes, because the table of merges has at most {MAX_ENTRIES:,} entries"
            )
        return self


@MODELS.register("codebook-gpt")
class CodebookGPT(QuantizesStates, RegularGPT):
    """A RegularGPT that becomes a finite machine in training: merged states move to the nearest code of a codebook.

    It begins as a RegularGPT. After the fraction `quantize_after` of training, its states are grouped into classes
    (`lengthwise.training.quantization`), and the prototypes of the classes become the codes. Gradients ignore the
    rounding of states to codes. With K codes, the merge of C states is a table of K^C entries, at any string length.

    Source: Chi et al. (2023), section 3; van den Oord et al. (2017), Neural Discrete Representation Learning, section
        3, for codes.
    Differs from the source: as in `RegularGPT` and `Codebook`.
    """

    Config = CodebookGPTConfig
    config: CodebookGPTConfig
    codebook: Codebook

    def __init__(self, config: CodebookGPTConfig, **sizes_and_generator: Any) -> None:
        super().__init__(config, **sizes_and_generator)
        self._forget_codes()

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again, and forget the codes."""
        super().reset_parameters(generator)
        self._forget_codes()

    def _forget_codes(self) -> None:
        empty = Codebook(max_codes=self.config.max_codes, d_model=self.config.d_model)
        self.codebook = empty.to(self.embedding.weight)

    @property
    def quantize_after(self) -> float:
        """Return the fraction of training steps after which training first searches for codes to fill the codebook."""
        return self.config.quantize_after

    @property
    def tree(self) -> Tree:
        """Return the leaves and layers of the tree; if there are codes, the only layer is a `QuantizingLayer`."""
        tree = super().tree
        if self.codebook.is_empty:
            return tree
        return tree._replace(layers=[QuantizingLayer(tree.layers[0], self.codebook)])
