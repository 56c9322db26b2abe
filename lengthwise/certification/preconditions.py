"""What has to hold before a model can be examined."""

import os

import torch
from torch import Tensor

from lengthwise.models.base import SequenceModel
from lengthwise.tasks.base import MachineTask


def check_model(model: SequenceModel, task: MachineTask) -> None:
    """Reject a model whose arithmetic is not that of float32 or float64 on a CPU, or that was made for another task,
    or that answers at random.

    Denormal weights are rejected, too: some programs compute with them and others, as training here, round them to 0.
    """
    tensors = model.state_dict().values()
    dtypes = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    if dtypes not in ({torch.float32}, {torch.float64}, set()):
        names = ", ".join(sorted(map(str, dtypes)))
        raise ValueError(f"model: expected weights in float32 or float64, got {names}; certify model.float()")
    if devices := {tensor.device.type for tensor in tensors} - {"cpu"}:
        raise ValueError(f"model: expected weights on the CPU, got some on {min(devices)}; certify model.cpu()")
    for name, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            _check_numbers(name, tensor)
    _check_precision()
    num_answers = model.last(torch.zeros(1, 1, dtype=torch.int64)).shape[1]
    if num_answers != len(task.classes):
        raise ValueError(
            f"model: expected one for the {len(task.classes)} answers of {task.name}, got {num_answers}; make it for "
            "this task"
        )
    _check_answers_are_repeated(model, len(task.symbols))


def _check_answers_are_repeated(model: SequenceModel, num_symbols: int) -> None:
    """What is proved of one run of a model has to hold of the next: layers by torch keep to `model.eval()`, others may
    not."""
    strings = torch.arange(64 * 16).reshape(64, 16) * 7 // 3 % num_symbols
    first, second = (model.last(strings) for _ in range(2))
    if not torch.equal(first.nan_to_num(), second.nan_to_num()):
        raise ValueError(
            "model: expected the same logits from the same strings, got others the second time; turn off dropout, "
            "noise and whatever else model.eval() leaves random"
        )


def _check_numbers(name: str, tensor: Tensor) -> None:
    if bool(tensor.isnan().any()):
        raise ValueError(f"model: expected weights that are numbers, got NaN in {name}; train again")
    # By their bits: a processor that rounds denormal numbers to 0 compares them as 0.
    bits = tensor.contiguous().view(torch.int32 if tensor.dtype == torch.float32 else torch.int64)
    mantissa = 23 if tensor.dtype == torch.float32 else 52
    magnitude = bits & torch.iinfo(bits.dtype).max
    if bool(((magnitude > 0) & (magnitude < 1 << mantissa)).any()):
        raise ValueError(
            f"model: expected weights that every processor computes with, got denormal numbers in {name}; set them to 0"
        )


def _check_precision() -> None:
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:  # where backends were given precisions of their own
        precision = "mixed"
    if precision != "highest":
        raise ValueError(
            f"precision: expected 'highest', got {precision!r}; call torch.set_float32_matmul_precision('highest')"
        )
    for name in ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"):
        if (mode := os.environ.get(name, "STRICT")).upper() != "STRICT":
            raise ValueError(f"precision: expected {name} unset or STRICT, got {mode!r}; unset it")
    if torch.is_autocast_enabled("cpu"):
        raise ValueError("precision: expected no autocast, got one on the CPU; certify outside of it")
