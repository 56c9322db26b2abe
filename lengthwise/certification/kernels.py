"""A self-test of this CPU's kernels: the errors of torch's functions, next to the errors that proofs assume.

Proofs bound sums for every order of summation. They assume that elementwise functions are off by at most a few units
(see below) of the result (`ops.intervals`, `checker`). The kernel that torch runs depends on the CPU, on settings and
on the sizes of tensors. So errors are measured on the CPU that computes a proof. Each error is relative to a size. For
most functions, this size is the absolute value of the result. A unit is 2^-23 times this size in float32, and 2^-52
times this size in float64. Proofs about nets in float64 still assume only the accuracy of float32.
"""

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import attrgetter

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lengthwise.certification.gates import GATES, gate_errors, sum_errors
from lengthwise.certification.methods.attention.scores import ATTENTION_ULPS
from lengthwise.certification.methods.one_hot_states.prover import NEVER_SEEN
from lengthwise.certification.parts import Kernels, MeasuredKernel
from lengthwise.certification.sweeps import (
    UNITS,
    Array,
    MeasuredError,
    cancelling_products,
    difference,
    error,
    generator,
    layouts,
    points,
    sigmoid,
    wide,
)
from lengthwise.devices import check_arithmetic
from lengthwise.ops.intervals import ULPS
from lengthwise.ops.sinusoids import position_angles

WIDTHS = (2, 3, 4, 5, 8, 16, 17, 31, 32, 64)
"""The widths of the rows for which softmax and norms are measured.

Some rows are shorter than a CPU's vector registers, and some are longer.
"""

Measurement = Callable[[torch.dtype], Iterator[MeasuredError]]
"""A function that measures a kernel for numbers of one type, and yields an error for each call of the kernel."""


def kernel_report() -> Kernels:
    """Measure this CPU's kernels. A process measures once for each number of threads and each setting of oneDNN.

    Raises:
        ValueError: torch is set to compute in a lower precision than float32 (`devices.check_arithmetic`).

    Example:
        >>> kernel_report().kernels[0].name
        'exp'
    """
    check_arithmetic()
    return _report(torch.get_num_threads(), torch.backends.mkldnn.enabled)


@cache
def _report(num_threads: int, uses_onednn: bool) -> Kernels:
    """Measure all kernels with torch's current settings. The arguments serve only as keys of the cache."""
    names = [(name, dtype) for name in measurements() for dtype in UNITS]
    return Kernels(
        kernels=tuple(measure(name, dtype) for name, dtype in names),
        torch=torch.__version__,
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        num_threads=num_threads,
    )


@torch.no_grad()
def measure(name: str, dtype: torch.dtype) -> MeasuredKernel:
    """Measure the errors of the kernel called `name` with torch's current settings, and return the worst error.

    The worst error has the largest ratio to the error that proofs assume.
    """
    worst = max(measurements()[name](dtype), key=attrgetter("ratio"))
    return MeasuredKernel(
        name=name, dtype=str(dtype).removeprefix("torch."), measured=worst.measured, assumed=worst.assumed
    )


def measurements() -> dict[str, Measurement]:
    """Return, by the name of a kernel, a function that measures the errors of this kernel."""
    by_name: dict[str, Measurement] = {
        # Most ranges end where the result no longer changes, or where it overflows. Logarithms and rsqrt are measured
        # from e^-60 to e^60.
        "exp": _elementwise(torch.exp, np.exp, _result_size, _below_overflow),
        "log": _elementwise(torch.log, np.log, _log_size, _positive),
        "log1p": _elementwise(torch.log1p, np.log1p, _result_size, _positive),
        "power of a distance": _power_errors,
        "sine and cosine": _wave_errors,
        "sigmoid": _elementwise(torch.sigmoid, sigmoid, _result_size, _symmetric(104.0)),
        "tanh": _elementwise(torch.tanh, np.tanh, _result_size, _symmetric(20.0)),
        "erf": _elementwise(torch.erf, partial(_each, math.erf), _result_size, _symmetric(6.0)),
        "GELU": _elementwise(F.gelu, _gelu, _gelu_size, _symmetric(14.0)),
        "tanh form of GELU": _elementwise(
            partial(F.gelu, approximate="tanh"), _tanh_gelu, _gelu_size, _symmetric(14.0)
        ),
        # Above 20, torch's softplus returns x itself.
        "softplus": _elementwise(F.softplus, _softplus, _result_size, _symmetric(20.0)),
        "rsqrt": _elementwise(torch.rsqrt, lambda x: 1 / np.sqrt(x), _result_size, _positive),
        "softmax": _softmax_errors,
        "softmax of one logit far ahead": _one_hot_errors,
        "log_softmax": _log_softmax_errors,
        "exponential of attention": _attention_errors,
        "LayerNorm": _layer_norm_errors,
        "unit vector": _unit_vector_errors,
        "product of matrices": _product_errors,
        "product of whole numbers": _whole_number_errors,
    }
    # Torch's recurrent layers have their own kernels, whose functions may differ from the elementwise functions.
    for kind, gates in GATES.items():
        for function in dict.fromkeys(gate.function for gate in gates):
            by_name[f"{function} inside nn.{kind}"] = partial(gate_errors, kind, function)
        by_name[f"sum inside nn.{kind}"] = partial(sum_errors, kind)
    return by_name


def _elementwise(
    f: Callable[[Tensor], Tensor],
    exact: Callable[[Array], Array],
    size: Callable[[Array, Array], Array],
    numbers: Callable[[torch.dtype], Tensor],
) -> Measurement:
    """Return a measurement of an elementwise function, whose errors are relative to `size(argument, result)`."""

    def errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
        for arguments in layouts(numbers(dtype)):
            right = exact(x := wide(arguments))
            yield MeasuredError(error(f(arguments), right, size(x, right)), ULPS)

    return errors


def _result_size(x: Array, result: Array) -> Array:
    return np.abs(result)


def _gelu_size(x: Array, result: Array) -> Array:
    """Return the size relative to which a GELU's error is measured. It includes |x|: 1 + erf loses digits for x < 0."""
    return np.abs(x) + np.abs(result)


def _log_size(x: Array, result: Array) -> Array:
    """Return the size relative to which a logarithm's error is measured. The term 1 covers errors of the argument."""
    return 1 + np.abs(result)


def _symmetric(top: float) -> Callable[[torch.dtype], Tensor]:
    """Return a function that gives, for each type, points in [-top, top] and the numbers of `EXTREMES`."""
    return partial(points, top)


def _positive(dtype: torch.dtype) -> Tensor:
    """Return numbers from e^-60 to e^60, many of them near 1."""
    return points(60.0, dtype).clamp(-60, 60).exp()


def _below_overflow(dtype: torch.dtype) -> Tensor:
    return points(104.0, dtype).clamp(max=88)


def _gelu(x: Array) -> Array:
    """Return x P(Z < x) for a standard normal Z. It is computed with erfc, which loses no digits for x < 0."""
    return x * _each(math.erfc, -x / math.sqrt(2)) / 2


def _each(f: Callable[[float], float], x: Array) -> Array:
    return np.array([f(number) for number in x.tolist()])


def _tanh_gelu(x: Array) -> Array:
    """Return x sigmoid(2 y) = x (1 + tanh y) / 2, for y = sqrt(2 / pi) (x + 0.044715 x^3)."""
    return x * sigmoid(np.sqrt(8 / x.dtype.type(np.pi)) * (x + 0.044715 * x**3))


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _power_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield errors of n^p for distances n and exponents p from 0.01 to 2, as in KERPLE."""
    numbers = torch.arange(1, 4097).to(dtype)
    drawn = torch.from_numpy(generator().uniform(0.01, 2, 8)).to(dtype)
    exponents = torch.cat([drawn, torch.tensor([0.01, 0.5, 1, 2], dtype=dtype)])[:, None]
    right = wide(numbers) ** wide(exponents)
    yield MeasuredError(error(numbers**exponents, right, right), ULPS)


def _wave_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield absolute errors, in units, of sines and cosines that float64 computes directly and by `torch.polar`."""
    angles = position_angles(4096, 8)
    turns = torch.polar(torch.ones_like(angles), angles)
    for wave, results in ((np.sin, (angles.sin(), turns.imag)), (np.cos, (angles.cos(), turns.real))):
        right = wave(wide(angles))
        for result in results:
            yield MeasuredError(error(result.to(dtype), right, np.ones_like(right)), ULPS)


def _logits(width: int, dtype: torch.dtype) -> Iterator[Tensor]:
    """Yield random rows of logits, and rows with one large logit.

    All logits are multiples of 2^-8, so their differences are exact. In the rows with one large logit, the largest
    exponential is 1. The other exponentials are so small that adding any one of them to 1 gives 1.
    """
    drawn = generator()
    for scale in (1.0, 4.0, 30.0):
        yield torch.from_numpy(np.round(drawn.normal(size=(48, width)) * scale * 256) / 256).to(dtype)
    lost = math.log(UNITS[dtype] / 2)
    rows = np.floor((lost + drawn.uniform(-0.1, 0.0, (48, width))) * 256) / 256
    rows[np.arange(48), drawn.integers(0, width, 48)] = 0.0
    yield torch.from_numpy(rows).to(dtype)


def _axes(f: Callable[[Tensor, int], Tensor], rows: Tensor) -> Iterator[Tensor]:
    """Yield a function's results on the same rows, laid out along the last axis, the first axis and a middle axis."""
    yield f(rows, -1)
    yield f(rows.T.contiguous(), 0).T
    between = rows.T.unflatten(1, (3, -1)).transpose(0, 1).contiguous()
    yield f(between, -2).transpose(0, 1).flatten(1).T


def _softmax_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield relative errors of softmax; proofs assume an exponential's error plus half a unit for each summand."""
    for width in WIDTHS:
        for logits in _logits(width, dtype):
            exponentials = np.exp(wide(logits) - wide(logits).max(1, keepdims=True))
            right = exponentials / exponentials.sum(1, keepdims=True)
            for result in _axes(torch.softmax, logits):
                yield MeasuredError(error(result, right, right), ULPS + width / 2)


def _log_softmax_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield errors of log_softmax relative to 1 + |result|, with the bound that `methods.one_hot_states` assumes."""
    for width in WIDTHS:
        for logits in _logits(width, dtype):
            centered = wide(logits) - wide(logits).max(1, keepdims=True)
            right = centered - np.log(np.exp(centered).sum(1, keepdims=True))
            for result in _axes(torch.log_softmax, logits):
                yield MeasuredError(error(result, right, 1 + np.abs(right)), (4 * ULPS + width) / 2)


def _one_hot_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield the largest absolute errors of softmax outputs that must be exactly 1 or 0."""
    drawn = generator()
    for width in WIDTHS:
        far = NEVER_SEEN[dtype] + drawn.exponential(3.0, (48, width))
        largest = torch.from_numpy(drawn.integers(0, width, 48))[:, None]
        logits = (-torch.from_numpy(far)).to(dtype).scatter_(1, largest, 0.0)
        right = torch.zeros_like(logits).scatter_(1, largest, 1.0)
        for result in _axes(torch.softmax, logits):
            yield MeasuredError(difference(result, right), 0.0)


def _attention_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield the relative error of the smaller of two attention weights.

    The scores of their two keys differ by 0 to 80. All other keys have weights of at most e^-200. If the key with the
    smaller score comes first among many, kernels rescale their running sums when they reach the key with the larger
    score.
    """
    for width, count in ((2, 500), (8, 500), (17, 100), (64, 24), (1200, 2)):
        small = -torch.from_numpy(generator().uniform(0, 80, (count, 1))).to(dtype)
        exponentials = np.exp(wide(small))
        right = exponentials / (1 + exponentials)
        for index in (0, -1):
            keys = small.new_full((count, width), -200.0)
            keys[:, index], keys[:, -1 - index] = small[:, 0], 0.0
            values = torch.zeros_like(keys)
            values[:, index] = 1.0
            key, value = keys[:, None, :, None], values[:, None, :, None]
            query = torch.ones_like(key)
            mask = torch.ones(count, 1, 1, width, dtype=torch.bool)
            attend = F.scaled_dot_product_attention
            for result in (
                attend(query, key, value, is_causal=True)[:, 0, -1],
                attend(query[:, :, :1], key, value, attn_mask=mask)[:, 0, 0],
                attend(query[:, :, :1], key, value, attn_mask=mask.to(dtype) - 1)[:, 0, 0],
            ):
                yield MeasuredError(error(result, right, right), ATTENTION_ULPS)


def _rows(width: int, dtype: torch.dtype) -> Iterator[Tensor]:
    """Yield rows around 0, rows far from 0, almost constant rows, large rows, and rows with a single large number."""
    numbers = generator().normal(size=(16, width))
    single = numbers * 2.0**-10
    single[:, -1] = 100.0
    for rows in (numbers, numbers + 1000, 3 + numbers * 2.0**-12, numbers * 1e6, single):
        yield torch.from_numpy(rows).to(dtype)


def _layer_norm_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield errors relative to |result| + max |x| / sqrt(variance + epsilon), with the largest |x| of the row.

    Every bound on a LayerNorm's result allows `ULPS` units of error in x - mean and in the scale. Bounds for wide rows
    allow more.
    """
    for width in (*WIDTHS, 100, 256):
        for rows in _rows(width, dtype):
            x = wide(rows)
            centered = x - x.mean(1, keepdims=True)
            scale = 1 / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
            size = scale * np.abs(x).max(1, keepdims=True) + np.abs(centered * scale)
            for chosen in (slice(None), slice(1)):
                normed = F.layer_norm(rows[chosen], (width,))
                yield MeasuredError(error(normed, (centered * scale)[chosen], size[chosen]), ULPS)


def _unit_vector_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield relative errors of unit vectors; proofs assume the errors of a sum of squares, a root and a quotient."""
    for width in WIDTHS:
        for rows in _rows(width, dtype):
            right = wide(rows) / np.sqrt((wide(rows) ** 2).sum(1, keepdims=True))
            yield MeasuredError(error(F.normalize(rows, dim=-1), right, np.abs(right)), width / 4 + 1.5)


def _products(vectors: Tensor, rows: Tensor, bias: Tensor) -> Iterator[Tensor]:
    """Yield `vectors` times the transpose of `rows`, plus `bias`, by each torch operation that nets use for this.

    Operations on single vectors yield the first row of the result alone.
    """
    columns = rows.T
    yield F.linear(vectors, rows, bias)
    yield F.linear(vectors[:1], rows, bias)
    yield torch.addmm(bias, vectors, columns)
    yield torch.mv(rows, vectors[0])[None] + bias
    yield vectors @ columns + bias
    yield torch.bmm(vectors[:, None], columns.expand(len(vectors), -1, -1))[:, 0] + bias
    yield torch.baddbmm(bias, vectors[None], columns[None])[0]
    yield torch.einsum("bn,mn->bm", vectors, rows) + bias
    yield (vectors[:, None] * rows).sum(-1) + bias


def _product_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    for count in (2, 5, 16, 33, 64, 200):
        products = cancelling_products(12, 5, count, dtype)
        for result in _products(products.vectors, products.rows, products.bias):
            exact, size = products.sums[: len(result)], products.sizes[: len(result)]
            yield MeasuredError(error(result, exact, size), products.assumed)


def _whole_number_errors(dtype: torch.dtype) -> Iterator[MeasuredError]:
    """Yield errors of sums below 2^22, which must be exact. Factors of 12 bits reveal products in lower precision."""
    drawn = generator()
    large, small = (drawn.integers(-top, top + 1, (24, 64)) for top in (4095, 15))
    for vectors, rows in ((large, small[:5]), (small, large[:5])):
        tensors = [torch.from_numpy(one).to(dtype) for one in (vectors, rows, rows[:, 0])]
        right = torch.from_numpy(vectors @ rows.T + rows[:, 0]).to(dtype)
        for result in _products(*tensors):
            yield MeasuredError(difference(result, right[: len(result)]), 0.0)
