"""Checks that each part of a model computes the formula of its class, and that nothing else changes its results."""

from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_hooks, _global_forward_pre_hooks

from lengthwise.models.capabilities import AcceptsNoise, ShowsNodes
from lengthwise.validation import type_in_words


def check_usual(model: nn.Module, kinds: set[type[nn.Module]]) -> None:
    """Reject a model with parts of classes outside `kinds`, or with anything that may change the results of its parts.

    Raises:
        ValueError: the exact class of a part is not in `kinds`; subclasses of these classes are rejected. A LayerNorm
            normalizes several axes, or lacks weight or bias. The weight of a linear map is not a matrix, or its bias
            does not have one number for each row. An embedding has a max_norm. An ``nn.ModuleList`` does not contain
            its parts in the order 0, 1, 2, ... A hook, a compiled call, a perturbation or an observer may change a
            result. A replaced method, or an attribute that hides a part of the same name, may also change a result. A
            weight has a tensor type that is not torch's own, or is missing from the state dict, by which a certificate
            identifies its model.
    """
    modules = list(model.modules())
    # The check compares exact types, because `isinstance` also accepts subclasses. The `forward` of a subclass may
    # compute something else.
    foreign = sorted({type(module).__name__ for module in modules[1:] if type(module) not in kinds})
    if foreign:
        raise ValueError(
            f"model: expected only parts that have bounds, got {', '.join(foreign)}; build the model without these "
            "parts"
        )
    for module in modules:
        _check_part(module)
    # A hook may replace the inputs or the result of a part, but the weights and settings do not record the hook.
    if any(module._forward_hooks or module._forward_pre_hooks for module in modules):
        raise ValueError("model: expected forward passes without hooks, got a hook; remove the hook")
    if has_global_hooks():
        raise ValueError("model: expected forward passes without hooks, got a global hook; remove the hook")
    # A compiled graph may fuse operations. Its rounding errors may then exceed the errors that the bounds allow.
    if any(module._compiled_call_impl is not None for module in modules):
        raise ValueError(
            "model: expected uncompiled modules, got a compiled module; certify the model before compilation"
        )
    if isinstance(model, AcceptsNoise) and model.perturb is not None:
        raise ValueError("model: expected no perturbation of states, got a perturbation; set model.perturb to None")
    if isinstance(model, ShowsNodes) and model.observe is not None:
        raise ValueError("model: expected no observer of states, got an observer; set model.observe to None")
    # Python finds an attribute of an object before a method of its class.
    own = {name for module in modules for name in vars(module) if callable(getattr(type(module), name, None))}
    if own:
        raise ValueError(
            f"model: expected only the methods of its class, got a replaced method {min(own)}; restore this method"
        )
    own = {name for module in modules for name in vars(module).keys() & _registered(module)}
    if own:
        raise ValueError(
            f"model: expected one part for each name, got two parts called {min(own)}; remove or rename one of the two "
            "parts"
        )
    _check_tensors(modules)


def _check_part(part: nn.Module) -> None:
    """Reject a norm, linear map, list or embedding that may compute another formula than the bounds assume."""
    if isinstance(part, nn.LayerNorm) and (len(part.normalized_shape) != 1 or part.weight is None or part.bias is None):
        raise ValueError(
            "model: expected a LayerNorm with weight and bias over the last axis, got another LayerNorm; use "
            "nn.LayerNorm(width) with its defaults"
        )
    # Torch silently broadcasts a bias of another shape, and would compute another formula.
    if isinstance(part, nn.Linear):
        check_bias(part.weight, part.bias)
    # A loop over a list takes its parts in the order in which they were added, but an index selects them by name.
    if isinstance(part, nn.ModuleList) and [*part._modules] != [str(index) for index in range(len(part))]:
        raise ValueError(
            "model: expected each nn.ModuleList to contain its parts in the order 0, 1, 2, ..., got the order "
            f"{', '.join(part._modules)}; build the list again"
        )
    # With max_norm, a look-up rescales the table in place, so the weights would change while the net reads.
    if isinstance(part, nn.Embedding) and part.max_norm is not None:
        raise ValueError(
            f"model: expected an embedding without max_norm, got max_norm={part.max_norm}; set max_norm to None"
        )


def unlike_settings(problem: str) -> ValueError:
    """Return the error that refuses a model with a part that the model's settings do not imply."""
    return ValueError(f"model: {problem}; build the model again from its settings")


def has_global_hooks() -> bool:
    """Return whether a global hook, which acts on all modules, may change inputs or results."""
    return bool(_global_forward_hooks or _global_forward_pre_hooks)


def check_bias(weight: Tensor, bias: Tensor | None) -> None:
    """Reject a bias that torch would broadcast, and a weight that is not a matrix: the bounds cover neither."""
    if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        raise ValueError(
            f"model: expected a weight matrix and a bias with one number for each row, got shapes {list(weight.shape)} "
            f"and {None if bias is None else list(bias.shape)}; change the shapes"
        )


def _registered(module: nn.Module) -> set[str]:
    """Return the names of a module's parts, parameters and buffers.

    A plain attribute with one of these names would hide the part from code that reads the attribute.
    """
    return {*module._modules, *module._parameters, *module._buffers}


def _check_tensors(modules: list[nn.Module]) -> None:
    """Reject tensors whose types are not torch's own, and tensors that are not in the state dict.

    A tensor of another type may compute something else.
    """
    for module in modules:
        tensors = [*module._parameters.values(), *module._buffers.values()]
        kinds = {type(tensor) for tensor in tensors} - {type(None), nn.Parameter, Tensor}
        if kinds:
            name = min(kind.__name__ for kind in kinds)
            raise ValueError(
                f"model: expected weights of torch's own tensor types, got a {name}; copy the weights into "
                "plain tensors"
            )
        unnamed = {name for name, value in vars(module).items() if isinstance(value, Tensor)}
        if unnamed | module._non_persistent_buffers_set:
            name = min(unnamed | module._non_persistent_buffers_set)
            raise ValueError(
                f"model: expected all tensors in the model's state dict, got tensor {name!r} of "
                f"{type_in_words(module)} outside the state dict; make this tensor a parameter or a persistent buffer"
            )
