"""The names of a model's parameters, and loading of weights in their own number format."""

from collections.abc import Mapping

from torch import Tensor, nn


def first_names(model: nn.Module) -> dict[str, str]:
    """Map every parameter name to the first name of the same parameter; a tied weight has several names."""
    named = list(model.named_parameters(remove_duplicate=False))
    # The order is reversed, so that the first name of a parameter overwrites the other names.
    first = {parameter: name for name, parameter in reversed(named)}
    return {name: first[parameter] for name, parameter in named}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Convert the model to the number format of the given weights, and then load these weights."""
    # Without this conversion, `load_state_dict` would convert the weights to the model's precision.
    dtype = next((tensor.dtype for tensor in weights.values() if tensor.is_floating_point()), None)
    model.to(dtype).load_state_dict(weights)
