"""The subject of a certificate: a model and its task, which are checked before the tests.

The model must not change during the tests. A certificate identifies a model by its settings and its weights. The checks
here reject a model whose answers depend on anything else, because its certificate could then describe another net. They
reject arithmetic that is not float32 or float64 on a CPU, changed attributes, and answers that depend on chance or on
earlier calls.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lengthwise.certification.builder import weights_digest
from lengthwise.devices import check_arithmetic
from lengthwise.models.base import MODELS, SequenceModel, check_is_model, eval_mode, outline
from lengthwise.models.consistency import check_consistent, check_methods, check_sizes, some_strings
from lengthwise.randomness import generator_for
from lengthwise.registry import is_of_package
from lengthwise.tasks.base import MachineTask, check_is_task
from lengthwise.tasks.consistency import check_task_consistent


@contextmanager
def checked_subject(model: SequenceModel, task: MachineTask) -> Iterator[None]:
    """Check a model and its task, keep the model in evaluation mode, and check at the end that nothing changed.

    Raises:
        ValueError: the model or the task cannot be certified, or the code in the ``with`` block changed the model's
            weights or answers.
    """
    check_is_model(model)
    check_is_task(task)
    with eval_mode(model):
        check_model(model, task)
        before = _snapshot_of(model, task)
        yield
        _check_unchanged(model, task, before)


def check_model(model: SequenceModel, task: MachineTask) -> None:
    """Reject a model or a task that cannot be certified, whatever the model answers.

    Raises:
        ValueError: the model does not compute in float32 or float64 on a CPU, or was made for another task. A weight is
            NaN or denormal. The state dict differs from the parameters and buffers. A method of the model, or of a
            user's task, raises an error or contradicts other methods. Torch is set to a lower precision than float32.
    """
    if model.precision != "float32":
        raise ValueError(
            "model: expected a model that computes in float32, got a model trained with "
            f"train.precision={model.precision!r}; certificates do not cover this arithmetic, so train the model in "
            "float32"
        )
    tensors = _tensors_of(model)
    dtypes = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if dtypes not in ({torch.float32}, {torch.float64}, set()):
        names = ", ".join(sorted(map(str, dtypes)))
        raise ValueError(f"model: expected weights in float32 or float64, got {names}; certify model.float()")
    if devices := {tensor.device.type for tensor in tensors.values()} - {"cpu"}:
        raise ValueError(f"model: expected weights on the CPU, got weights on {min(devices)}; certify model.cpu()")
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            _check_numbers(name, tensor)
    _check_state_dict(model, tensors)
    check_arithmetic()
    if not is_of_package(type(task)):
        check_task_consistent(task)
    _check_axes(model, task)
    check_consistent(model, task)
    check_sizes(model, task)
    check_methods(model, task)


def _tensors_of(model: SequenceModel) -> dict[str, Tensor]:
    """Return the model's parameters and buffers by name; a state dict that a hook changes may lack some of them."""
    parameters, buffers = (
        dict(of_kind(remove_duplicate=False)) for of_kind in (model.named_parameters, model.named_buffers)
    )
    return parameters | buffers


def _check_state_dict(model: SequenceModel, tensors: dict[str, Tensor]) -> None:
    """Reject a state dict that differs from the parameters and buffers: certificates identify a model by this dict."""
    state = model.state_dict()
    differing = {name for name in state if name not in tensors}
    differing |= {name for name, _ in model.named_parameters(remove_duplicate=False) if name not in state}
    differing |= {name for name in state if name in tensors and not _are_same(state[name], tensors[name])}
    if differing:
        raise ValueError(
            f"model: expected a state dict of the model's own parameters and buffers, but {min(differing)} differs; "
            "remove the hook that changes the state dict"
        )


def _are_same(first: object, second: Tensor) -> bool:
    return isinstance(first, Tensor) and first.dtype == second.dtype and torch.equal(first, second)


class _Snapshot(NamedTuple):
    """A digest of a model's weights, and its logits on some strings."""

    weights: str
    logits: Tensor


def _snapshot_of(model: SequenceModel, task: MachineTask) -> _Snapshot:
    """Return a digest of the weights, and the logits on some strings, which must not change during the tests.

    A proof about one call must hold for the next call. Layers of torch are deterministic after `model.eval()`, but
    other layers may not be.

    Raises:
        ValueError: two calls give different logits.
    """
    first, second = (_logits_of(model, len(task.symbols)) for _ in range(2))
    if not torch.equal(first, second):
        raise ValueError(
            "model: expected the same logits from the same strings, got different logits the second time; turn off "
            "dropout, noise and whatever else is still random after model.eval()"
        )
    return _Snapshot(weights_digest(model), first)


def _check_axes(model: SequenceModel, task: MachineTask) -> None:
    """Reject a registered model with a tensor that has more or fewer axes than its settings imply.

    This check comes before the model runs, because torch silently broadcasts a weight with one more axis. Results may
    then get more axes at every level of a tree.
    """
    kind = type(model)
    if not MODELS.has_member(kind):
        return
    expected = outline(kind.name, model.config, task).state_dict()
    num_axes = {name: len(shape) for name, shape in _shapes(expected).items()}
    for name, shape in _shapes(model.state_dict()).items():
        if len(shape) != num_axes.get(name, len(shape)):
            raise ValueError(
                f"model: expected {num_axes[name]} axes of {name}, as its settings imply, got {len(shape)} (shape "
                f"{list(shape)}); reshape this tensor"
            )


def check_made_by_settings(model: SequenceModel, task: MachineTask) -> None:
    """Reject a registered model if its settings and weights do not determine its answers.

    A certificate identifies a model by its settings and weights alone, so nothing else may change the answers. For
    example, no setting and no weight contains the epsilon of a norm, but a changed epsilon would change answers. For
    models that are not registered, the provers make such checks.
    """
    kind = type(model)
    if not MODELS.has_member(kind):
        return
    # A new net gets this model's settings and weights. If the new net differs from the model, a certificate of the
    # model would also identify the new net, about which nothing was proved.
    rebuilt = _made_again(model, task)
    state = model.state_dict()
    if differing := _shapes(state).items() ^ _shapes(rebuilt.state_dict()).items():
        raise ValueError(
            "model: expected tensors with the names and shapes that its settings imply, but "
            f"tensor {min(differing)[0]!r} differs; certify a model whose parts were not changed after it was built"
        )
    # A part may have several names. The rebuilt net must have the part under each of these names.
    parts, rebuilt_parts = (dict(net.named_modules(remove_duplicate=False)) for net in (model, rebuilt))
    if differing := parts.keys() ^ rebuilt_parts.keys():
        raise ValueError(
            f"model: expected the parts that its settings imply, but part {min(differing)!r} is missing or additional; "
            "certify a model whose parts were not changed after it was built"
        )
    for name, part in parts.items():
        got, expected = _settings_of(part), _settings_of(rebuilt_parts[name])
        if keys := {key for key in got.keys() | expected.keys() if got.get(key) != expected.get(key)}:
            key = min(keys)
            raise ValueError(
                f"model: expected {key}={expected.get(key)!r} in its part {(name or kind.name)!r}, as its settings "
                f"imply, got {got.get(key)!r}; build the model again from its settings, and load its weights"
            )
    rebuilt.to(next(model.parameters()).dtype).load_state_dict(state)
    if not torch.equal(_logits_of(rebuilt.eval(), len(task.symbols)), _logits_of(model, len(task.symbols))):
        raise ValueError(
            f"model: expected the logits of a {kind.name} with the same settings and weights, got different logits; "
            "build the model again from its settings, and load its weights"
        )


def _made_again(model: SequenceModel, task: MachineTask) -> SequenceModel:
    """Return a new net with the model's settings, and with the number of symbols that the model's tensors imply.

    A model may have more symbols than its task. Then some sizes of its tensors are larger than the sizes of a net made
    for the task. If all these sizes are larger by the same number, the new net has the task's number of symbols plus
    this number. Otherwise, the new net has as many symbols as the task.
    """

    def build(num_extra_symbols: int) -> SequenceModel:
        kind: type[Any] = type(model)
        sizes = {"vocab_size": len(task.symbols) + num_extra_symbols, "num_classes": len(task.classes)}
        net: SequenceModel = kind(model.config, **sizes, generator=generator_for(0, "parameters"))
        return net

    rebuilt = build(0)
    shapes, rebuilt_shapes = _shapes(model.state_dict()), _shapes(rebuilt.state_dict())
    differences = {
        size - of_task
        for name in shapes.keys() & rebuilt_shapes.keys()
        for size, of_task in zip(shapes[name], rebuilt_shapes[name], strict=False)
        if size != of_task
    }
    return build(min(differences)) if len(differences) == 1 and min(differences) > 0 else rebuilt


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def _settings_of(part: nn.Module) -> dict[str, object]:
    """Return a part's attributes that are numbers, strings or tuples, such as the epsilon of a norm.

    The attributes `training` and `precision` are left out.
    """
    kinds = (bool, int, float, str, tuple)
    later = {"training", "precision"}  # set after a model is built: by `eval` or `train`, and by a training run
    return {name: value for name, value in vars(part).items() if isinstance(value, kinds) and name not in later}


def _check_unchanged(model: SequenceModel, task: MachineTask, before: _Snapshot) -> None:
    """Reject a model that changed while it read strings: the evidence is about the model before the change."""
    changed = {
        "weights": weights_digest(model) != before.weights,
        "answers": not torch.equal(_logits_of(model, len(task.symbols)), before.logits),
    }
    for what, is_changed in changed.items():
        if is_changed:
            raise ValueError(
                f"model: expected {what} that do not change while the model reads strings, but they changed; make sure "
                "that a call of the model stores nothing for the next call"
            )


def _logits_of(model: SequenceModel, num_symbols: int) -> Tensor:
    return model.last(some_strings(64, 16, num_symbols)[:, : model.max_length]).nan_to_num()


def _check_numbers(name: str, tensor: Tensor) -> None:
    if bool(tensor.isnan().any()):
        raise ValueError(f"model: expected weights that are numbers, got NaN in {name}; train again")
    # The bits are compared, because a processor that rounds denormal numbers to 0 also compares them as 0.
    bits = tensor.contiguous().view(torch.int32 if tensor.dtype == torch.float32 else torch.int64)
    mantissa = 23 if tensor.dtype == torch.float32 else 52
    magnitude = bits & torch.iinfo(bits.dtype).max
    # Some programs compute with denormal weights, and others (such as training here) round them to 0.
    if bool(((magnitude > 0) & (magnitude < 1 << mantissa)).any()):
        raise ValueError(
            f"model: expected weights that every processor treats alike, got denormal numbers in {name}, which some "
            "processors round to 0; set these numbers to 0"
        )
