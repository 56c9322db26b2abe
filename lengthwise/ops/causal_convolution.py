"""The causal convolution y_t = sum_s k_s u_{t-s}, where every channel has its own kernel k."""

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.ops.shapes import check_tensors


def causal_convolution_by_definition(
    inputs: Float[Tensor, "B T D"], kernels: Float[Tensor, "D T"]
) -> Float[Tensor, "B T D"]:
    """Return y_t = sum_s k_s u_{t-s} for the inputs u and each channel's kernel k, term by term.

    Example:
        >>> causal_convolution_by_definition(torch.tensor([[[1.0], [2.0]]]), torch.tensor([[1.0, 10.0]])).flatten()
        tensor([ 1., 12.])
    """
    _check(inputs, kernels)
    length = inputs.shape[1]
    sums = [
        sum((kernels[:, s] * inputs[:, t - s] for s in range(t + 1)), torch.zeros_like(inputs[:, 0]))
        for t in range(length)
    ]
    return torch.stack(sums, 1)


def causal_convolution(inputs: Float[Tensor, "B T D"], kernels: Float[Tensor, "D _"]) -> Float[Tensor, "B T D"]:
    """Return y_t = sum_s k_s u_{t-s} for the inputs u and each channel's kernel k, by Fourier transforms.

    For T positions, this takes about T log T operations. An exported graph computes the sums term by term.

    Raises:
        ValueError: T = 0, inputs and kernels differ in length or width, or one of them is not real.

    Example:
        >>> causal_convolution(torch.tensor([[[1.0], [2.0]]]), torch.tensor([[1.0, 10.0]])).flatten()
        tensor([ 1., 12.])
    """
    _check(inputs, kernels)
    if torch.compiler.is_exporting():
        return causal_convolution_by_definition(inputs, kernels)
    length = inputs.shape[1]
    # A product of transforms is a circular convolution. Zeros up to twice the length keep the end from wrapping around.
    spectrum = torch.fft.rfft(inputs, 2 * length, dim=1) * torch.fft.rfft(kernels.T, 2 * length, dim=0)
    outputs: Tensor = torch.fft.irfft(spectrum, 2 * length, dim=1)
    return outputs[:, :length]


def _check(inputs: Tensor, kernels: Tensor) -> None:
    check_tensors(inputs=inputs, kernels=kernels)
    if inputs.ndim != 3 or not inputs.shape[1]:
        raise ValueError(
            f"inputs: expected shape [B, T, D] with T of at least 1, got {list(inputs.shape)}; give one number for "
            "each string, step and channel"
        )
    length = inputs.shape[1]
    if kernels.shape != (inputs.shape[2], length):
        raise ValueError(
            f"kernels: expected shape {[inputs.shape[2], length]} for inputs {list(inputs.shape)}, got "
            f"{list(kernels.shape)}; give one number for each channel and step"
        )
    if not (inputs.is_floating_point() and kernels.is_floating_point()):
        raise ValueError(
            f"dtypes: expected real inputs and kernels, got {inputs.dtype} and {kernels.dtype}; convert them with "
            "Tensor.to"
        )
