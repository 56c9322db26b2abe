"""The causal transformer: a stack of layers with separate weights."""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.layers.transformer_layer import States, TransformerLayer
from lengthwise.models.base import MODELS, Depth
from lengthwise.models.capabilities import AcceptsNoise, ReadsContinuations
from lengthwise.models.causal_transformer import CausalTransformer, CausalTransformerConfig
from lengthwise.models.checks import check_made_from


class TransformerConfig(CausalTransformerConfig):
    """The settings of a `Transformer`: the settings of every causal transformer, and the number L of layers."""

    num_layers: Depth = 2


@MODELS.register("transformer")
class Transformer(ReadsContinuations, AcceptsNoise, CausalTransformer):
    """A stack of L layers as in GPT-2, the baseline of a looped transformer with L loops.

    Training may add noise to the result of each layer but the last. The next layer then learns to treat nearby states
    alike, so the answers of the net become easier to bound.

    Source: the baselines of Xu and Sato (2024); Radford et al., "Language models are unsupervised multitask learners"
        (2019).
    Differs from the source: dropout is absent; the configuration sets positions and initialization.
    """

    Config = TransformerConfig
    config: TransformerConfig

    def __init__(self, config: TransformerConfig, *, generator: torch.Generator | None = None, **sizes: Any) -> None:
        check_made_from(type(self).Config, config, generator)
        super().__init__(config, num_layers=config.num_layers, **sizes)
        self.layers = nn.ModuleList(
            TransformerLayer(d_model=config.d_model, num_heads=config.num_heads, kind="gpt2")
            for _ in range(config.num_layers)
        )
        self.reset_parameters(generator or torch.Generator())

    @property
    def depth(self) -> int:
        return self.config.num_layers

    def states(self, read: States) -> States:
        *below, (top, top_attention) = zip(self._layers(), self._attention(read), strict=True)
        for layer, attention in below:
            read = self._perturbed(layer(read, attention=attention))
        states: Tensor = top(read, attention=top_attention)
        return states

    def states_at(self, read: States, indices: Int64[Tensor, " B"]) -> Float[Tensor, "B D"]:
        # The last layer is computed only at the requested positions.
        *below, (top, top_attention) = zip(self._layers(), self._attention(read), strict=True)
        for layer, attention in below:
            read = self._perturbed(layer(read, attention=attention))
        return top.at(read, indices.to(read.device), attention=top_attention)

    def _perturbed(self, states: States) -> States:
        return self.perturb(states) if self.perturb else states

    def continued_logits(self, inputs: Int64[Tensor, "B T"], tails: Int64[Tensor, "W S"]) -> Float[Tensor, "B P W S Y"]:
        length, num_symbols = inputs.shape[1], tails.shape[1]
        read = self._read(inputs)
        # Symbol s of a tail is read at the positions s + 1 ... s + P, one for each prefix.
        everywhere = self._read(tails.flatten()[:, None].repeat(1, length)).unflatten(0, tails.shape)
        states = torch.stack(
            [everywhere[:, s, s + 1 : length - num_symbols + s + 1] for s in range(num_symbols)], 2
        ).expand(len(inputs), -1, -1, -1, -1)
        for layer, attention in zip(self._layers(), self._attention(read), strict=True):
            states = layer.continued(read, states, attention)
            read = layer(read, attention=attention)
        return self.logits_of(states).transpose(1, 2)
