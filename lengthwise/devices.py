"""Devices: choosing the device of a net, naming it in results, moving tensors to it, and checking its arithmetic.

Batches, noise and initial weights are drawn on the CPU and then moved, because the CPU's generators give the same
numbers everywhere. Results on other devices may differ in the last bits, because these devices add numbers in another
order. With a single thread, the order is fixed, so a repeated run on the CPU gives the same bits. The nets are small,
so more threads would also be far slower on a busy machine.
"""

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from itertools import chain
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import torch
from torch import Tensor, nn

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
"""The name of a device. `auto` selects CUDA if it is available, else MPS, else the CPU."""

Precision = Literal["float32", "bfloat16"]
"""The precision of matrix products. `bfloat16` is torch's autocast: weights and sums stay float32."""

Given = ParamSpec("Given")
Result = TypeVar("Result")

AUTOCAST = ("cpu", "cuda", "mps")
"""Kinds of devices on which torch can lower the precision of products."""

VARIABLE = "LENGTHWISE_DEVICE"
"""The environment variable that names the default device."""

SYNCHRONOUS_DEVICES = ("cpu", "mps", "meta")
"""The kinds of devices on which the program checks inputs at once. On any other kind, the device checks them later,
and the program does not wait (`on_device_assert`)."""


def find_device(name: str) -> torch.device:
    """Return the device with this name.

    Raises:
        ValueError: the name is unknown, or this machine lacks such a device.

    Example:
        >>> find_device("cpu")
        device(type='cpu')
    """
    if name not in get_args(DeviceName):
        raise ValueError(
            f"device: expected one of {', '.join(get_args(DeviceName))}, got {name!r}; auto takes a GPU if there is one"
        )
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, is_there in has.items() if is_there))
    if not has[name]:
        there = " or ".join(kind for kind, is_there in has.items() if is_there)
        raise ValueError(
            f"device: expected a device of this machine, got {name!r}, which torch does not find; use {there}"
        )
    return torch.device(name)


def default_device() -> torch.device:
    """Return the device that the environment variable `LENGTHWISE_DEVICE` names, or the CPU.

    Worker processes inherit this variable.
    """
    try:
        return find_device(os.environ.get(VARIABLE, "cpu"))
    except ValueError as problem:
        raise ValueError(f"{VARIABLE}: {str(problem).removeprefix('device: ')}") from None


def describe_device(device: torch.device) -> str:
    """Return the kind of a device, with the model of a GPU or the architecture of the machine.

    Results name the device, because their last bits depend on it.
    """
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return f"{device.type} ({platform.machine()})"


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model's parameters, or else of its buffers; the CPU if it has neither."""
    for tensor in chain(model.parameters(), model.buffers()):
        return tensor.device
    return torch.device("cpu")


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a copy of the tensor on a device, or the tensor itself if it is already there.

    Pinned memory lets the CPU continue during a transfer to CUDA.
    """
    if device.type == "cuda" and tensor.device.type == "cpu":
        # Without pinned memory, the CPU would wait for the transfer, even with non_blocking.
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def on_device_assert(condition: Tensor, sentence: str) -> None:
    """Stop the program, with the message `sentence`, if any element of the tensor `condition` is false.

    The program does not wait for the result. Use this function only on devices that are not in `SYNCHRONOUS_DEVICES`.
    """
    torch._assert_async(condition.all(), sentence)


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread inside the context, and the previous number of threads afterwards.

    The function can also serve as a decorator. Inside, denormal float32 numbers become 0 if the processor supports
    this. Arithmetic on denormal numbers takes up to a hundred times as long, and the probabilities of states that do
    not occur are often denormal.
    """
    threads, flushed = torch.get_num_threads(), _flushes()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(flushed)


@contextmanager
def denormals_kept() -> Iterator[None]:
    """Keep denormal float32 numbers inside the context, also within `one_thread`, which would replace them by 0."""
    flushed = _flushes()
    torch.set_flush_denormal(False)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed)


def _flushes() -> bool:
    """Return whether torch replaces denormal float32 numbers by 0 at the moment."""
    return not bool(torch.tensor(1e-39, device="cpu") * 1.0)


@contextmanager
def computing_in(precision: Precision, device: torch.device) -> Iterator[None]:
    """Compute matrix products in `precision`, float32 or bfloat16, inside the context.

    With both precisions, the products inside cuDNN's recurrences and convolutions do not use TF32, which is torch's
    default there and keeps only 11 significant bits.
    """
    products: Any = nullcontext() if precision == "float32" else torch.autocast(device.type, dtype=torch.bfloat16)
    with products, _without_tf32() if device.type == "cuda" else nullcontext():
        yield


@contextmanager
def _without_tf32() -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def lowers_precision() -> bool:
    """Return whether products are currently less precise than float32, as inside `computing_in("bfloat16", ...)`."""
    return any(torch.is_autocast_enabled(kind) for kind in AUTOCAST)


def in_full_precision(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function of tensors compute in float32, even inside `computing_in("bfloat16", ...)`.

    Recurrences need full precision, because every step inherits the rounding errors of all earlier steps.
    """

    @wraps(function)
    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        if not lowers_precision():
            return function(*given, **named)
        with ExitStack() as stack:
            for kind in AUTOCAST:
                stack.enter_context(torch.autocast(kind, enabled=False))
            # Disabling autocast is not enough: arguments may be bfloat16, as results of earlier products.
            is_low = [isinstance(one, Tensor) and one.dtype == torch.bfloat16 for one in given]
            exact: Any = [one.float() if low else one for one, low in zip(given, is_low, strict=True)]  # type: ignore[attr-defined]
            return function(*exact, **named)

    return run


def check_arithmetic() -> None:
    """Raise a ValueError if torch or its environment is set to change float32 arithmetic on a CPU.

    Certificates hold only for ordinary float32 arithmetic. The settings that identify a run do not record the
    arithmetic.
    """
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to answer if backends have different precisions
        precision = "mixed"
    if precision != "highest":
        raise ValueError(
            f"precision: expected 'highest', got {precision!r}; call torch.set_float32_matmul_precision('highest')"
        )
    for backend in ("matmul", "rnn", "conv"):
        if (precision := getattr(torch.backends.mkldnn, backend).fp32_precision) not in ("none", "ieee"):
            raise ValueError(
                f"precision: expected 'ieee' for torch.backends.mkldnn.{backend}.fp32_precision, got {precision!r}; "
                "set it to 'ieee'"
            )
    for name in ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"):
        if (mode := os.environ.get(name, "STRICT")).upper() != "STRICT":
            raise ValueError(
                f"precision: expected the environment variable {name} to be unset or STRICT, got {mode!r}; unset this "
                "variable"
            )
    if torch.is_autocast_enabled("cpu"):
        raise ValueError(
            "precision: expected no autocast, got autocast on the CPU; call this function outside of autocast"
        )
    if (dtype := torch.get_default_dtype()) != torch.float32:
        raise ValueError(
            f"dtype: expected float32 as torch's default, got {str(dtype).removeprefix('torch.')}; call "
            "torch.set_default_dtype(torch.float32)"
        )
    if (device := torch.get_default_device().type) != "cpu":
        raise ValueError(
            f"device: expected the CPU as torch's default, got {device}; call torch.set_default_device('cpu')"
        )


@contextmanager
def on_cpu(model: nn.Module) -> Iterator[None]:
    """Move a model to the CPU inside the context, for work that only a CPU can do, and back afterwards."""
    device = device_of(model)
    model.cpu()
    try:
        yield
    finally:
        model.to(device)
