"""Caches of fixed size in the library transformers, as lists of tensors. This module does not import the library."""

import copy
import inspect
from typing import Any, Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.devices import device_of

CACHE_NAMES = ("cache", "cache_params", "past_key_values")
"""Names of the cache as an argument and in outputs. They depend on the library's version and on the kind of model."""

States = Literal["conv_states", "recurrent_states"]
STATES: tuple[States, ...] = get_args(States)
"""The attributes of a cache's layer that contain its tensors."""


class _Entry(NamedTuple):
    """The location of a tensor in a cache: the cache's layer, the layer's attribute, and the key in this attribute."""

    layer: int
    states: States
    number: int


class FixedCache:
    """A ``DynamicCache`` as a list of tensors; all layers of the cache have convolutional and recurrent states.

    `first` contains the tensors of the cache before any token, which are zero.
    """

    def __init__(self, template: Any, argument: str) -> None:
        self.template, self.argument = template, argument
        self.entries = [
            _Entry(layer_number, states, number)
            for layer_number, layer in enumerate(template.layers)
            for states in STATES
            for number, tensor in getattr(layer, states).items()
            if tensor is not None
        ]
        self.first = [torch.zeros_like(self._tensors(template, entry)[entry.number][0]) for entry in self.entries]

    def read(
        self, backbone: nn.Module, tokens: Int64[Tensor, "B 1"], before: list[Tensor]
    ) -> tuple[Float[Tensor, "B 1 D"], list[Tensor]]:
        # The library writes into caches, so every call needs its own cache.
        cache = copy.deepcopy(self.template)
        for entry, tensor in zip(self.entries, before, strict=True):
            self._tensors(cache, entry)[entry.number] = tensor
        hidden = backbone(tokens, **{self.argument: cache}, use_cache=True).last_hidden_state
        return hidden, [self._tensors(cache, entry)[entry.number] for entry in self.entries]

    @staticmethod
    def _tensors(cache: Any, entry: _Entry) -> dict[int, Tensor]:
        tensors: dict[int, Tensor] = getattr(cache.layers[entry.layer], entry.states)
        return tensors


def cache_of(backbone: nn.Module, token: int) -> FixedCache | None:
    """Return a model's cache after one token, or None if the cache grows with the string or cannot be made."""
    try:
        outputs = backbone(torch.full((1, 1), token, device=device_of(backbone)), use_cache=True)
    except Exception:  # the model can still read whole strings, because it has already run without a cache
        return None
    template = next((value for name in CACHE_NAMES if (value := getattr(outputs, name, None)) is not None), None)
    layers = getattr(template, "layers", ())
    # Layers of attention keep keys, which grow with the string.
    if not layers or not all(hasattr(layer, "recurrent_states") and not hasattr(layer, "keys") for layer in layers):
        return None
    parameters = inspect.signature(backbone.forward).parameters
    argument = next((name for name in CACHE_NAMES if name in parameters), None)
    return None if argument is None else FixedCache(template, argument)
