"""sLSTM in its own coordinates and mLSTM in chunks, against the equations of the source, step by step."""

import math
from collections.abc import Sequence

import pytest
import torch

from lengthwise.ops.mlstm import mlstm, mlstm_by_definition
from lengthwise.ops.outer_products import MAX_CHUNK as C
from lengthwise.ops.slstm import MINIMUM, slstm, slstm_by_definition

LENGTHS = [1, 2, C - 1, C, C + 1, 63, 3 * C + 5]
TOLERANCE = {torch.float32: 5e-4, torch.float64: 1e-10}


def drawer(length: int, dtype: torch.dtype):
    generator = torch.Generator().manual_seed(length)
    return lambda *shape: torch.randn(shape, generator=generator, dtype=dtype)


def compare(functions, given: list[torch.Tensor], dtype: torch.dtype) -> None:
    """Values, and the gradients of a random linear function of the outputs and of the last states."""
    given, compared = [tensor.requires_grad_() for tensor in given], []
    for function in functions:
        computed = function(*given)
        draw = drawer(0, dtype)
        total = sum((each * draw(*each.shape)).sum() for each in computed)
        compared.append((*computed, *torch.autograd.grad(total, given, materialize_grads=True)))
    for one, other in zip(*compared, strict=True):
        assert one.shape == other.shape
        assert float((one - other).detach().abs().max()) <= TOLERANCE[dtype] * max(1, float(other.detach().abs().max()))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("is_first", [True, False], ids=["from nothing", "from a state"])
@pytest.mark.parametrize("length", [1, 2, 7, 63])
def test_moving_averages_are_slstm(length: int, is_first: bool, dtype: torch.dtype) -> None:
    draw = drawer(length, dtype)
    gates, feedback = 3 * draw(2, length, 4, 2, 3), 0.5 * draw(4, 2, 3, 3)
    before = [draw(2, 2, 3), draw(2, 2, 3).tanh(), draw(2, 2, 3)]
    if is_first:
        before = [torch.zeros_like(before[0]), torch.zeros_like(before[0]), torch.full_like(before[0], MINIMUM)]
    compare((slstm, slstm_by_definition), [gates, feedback, *before], dtype)


@pytest.mark.parametrize("length", [1, 2, 20, 63])
def test_slstm_is_the_plain_recurrence_in_value_and_gradient(length: int) -> None:
    """The first equations of the source, without any stabilizer, from nothing."""
    draw = drawer(0, torch.float64)
    given = gates, feedback = draw(1, length, 4, 1, 3).requires_grad_(), draw(4, 1, 3, 3).requires_grad_()
    h, c, n = (torch.zeros(1, 1, 3, dtype=torch.float64) for _ in range(3))
    outputs, *_ = slstm(gates, feedback, h, c, n + MINIMUM)
    plain = []
    for t in range(length):
        i, f, z, o = (gates[:, t, k] + h @ feedback[k] for k in range(4))
        c, n = f.sigmoid() * c + i.exp() * z.tanh(), f.sigmoid() * n + i.exp()
        h = o.sigmoid() * c / n
        plain.append(h)
    check_equal(outputs, torch.stack(plain, 1), given)


@pytest.mark.parametrize("size", [1.0, 300.0])
def test_extreme_gates_overflow_nothing(size: float) -> None:
    draw = drawer(0, torch.float32)
    gates = size * draw(2, 50, 4, 1, 3)
    before = [torch.zeros(2, 1, 3), torch.zeros(2, 1, 3), torch.full((2, 1, 3), MINIMUM)]
    given = [gates, draw(4, 1, 3, 3), *before]
    outputs, *_ = slstm(*(tensor.requires_grad_() for tensor in given))
    gradients = torch.autograd.grad(outputs.sum(), given)
    assert all(bool(each.isfinite().all()) for each in (outputs, *gradients))
    assert float(outputs.detach().abs().max()) <= 1
    vectors = [draw(2, 50, 1, 3) for _ in range(3)]
    given = [size * draw(2, 50, 1), size * draw(2, 50, 1), *vectors, torch.zeros(2, 1, 3, 4), torch.zeros(2, 1)]
    outputs, *_ = mlstm(*(tensor.requires_grad_() for tensor in given))
    gradients = torch.autograd.grad(outputs.sum(), given[:-1])
    assert all(bool(each.isfinite().all()) for each in (outputs, *gradients))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("length", LENGTHS)
def test_chunks_of_mlstm_give_what_the_loop_gives(length: int, dtype: torch.dtype) -> None:
    draw = drawer(length, dtype)
    gates = [draw(2, length, 2), draw(2, length, 2) + 2]
    vectors = [draw(2, length, 2, 3), draw(2, length, 2, 4), draw(2, length, 2, 3)]
    compare((mlstm, mlstm_by_definition), [*gates, *vectors, draw(2, 2, 3, 5), draw(2, 2).abs()], dtype)


@pytest.mark.parametrize("length", [1, 2, 40, 63])
def test_mlstm_is_the_plain_recurrence_in_value_and_gradient(length: int) -> None:
    """The first equations of the source, without any stabilizer."""
    draw = drawer(0, torch.float64)
    drawn = [3 * draw(1, length, 1), draw(1, length, 1), *(draw(1, length, 1, 3) for _ in range(3))]
    given = i, f, keys, values, queries = [each.requires_grad_() for each in drawn]
    outputs, *_ = mlstm(i, f, keys, values, queries, i.new_zeros(1, 1, 3, 4), i.new_zeros(1, 1))
    memory, norm = i.new_zeros(3, 3), i.new_zeros(3)
    plain = []
    for t in range(length):
        k, v, q = keys[0, t, 0], values[0, t, 0], queries[0, t, 0]
        memory = f[0, t, 0].sigmoid() * memory + i[0, t, 0].exp() * torch.outer(k, v)
        norm = f[0, t, 0].sigmoid() * norm + i[0, t, 0].exp() * k
        plain.append(q @ memory / (norm @ q).abs().clamp(min=1))
    check_equal(outputs[0, :, 0], torch.stack(plain), given)


@pytest.mark.parametrize("function", [mlstm, mlstm_by_definition])
def test_the_state_of_mlstm_is_that_of_its_equations(function) -> None:
    """The last state, from a state: the stabilizer number by number, and the sums divided by e^m."""
    draw = drawer(0, torch.float64)
    i, f, keys, values, queries = draw(1, 9, 2) - 1, draw(1, 9, 2) - 3, *(draw(1, 9, 2, 3) for _ in range(3))
    before, first = draw(1, 2, 3, 4), torch.tensor([[0.0, 2.5]], dtype=torch.float64)
    _, sums, stabilizer = function(i, f, keys, values, queries, before, first)
    for head in range(2):
        m, largest = float(first[0, head]), []
        total = before[0, head] * math.exp(m)
        for t in range(9):
            stays = math.log(1 / (1 + math.exp(-float(f[0, t, head]))))
            m = max(stays + m, float(i[0, t, head]), 0.0)
            largest.append(m)
            counted = torch.cat([values[0, t, head], torch.ones(1, dtype=torch.float64)])
            total = math.exp(stays) * total + i[0, t, head].exp() * torch.outer(keys[0, t, head], counted)
        assert min(largest) < 0.5, "the draw has to need the smallest stabilizer"
        assert float(stabilizer[0, head]) == pytest.approx(m, abs=1e-12)
        torch.testing.assert_close(sums[0, head], total / math.exp(m))


def check_equal(outputs: torch.Tensor, plain: torch.Tensor, given: Sequence[torch.Tensor]) -> None:
    torch.testing.assert_close(outputs, plain)
    weights = torch.randn(plain.shape, generator=torch.Generator().manual_seed(1), dtype=plain.dtype)
    fast, slow = (torch.autograd.grad((each * weights).sum(), given) for each in (outputs, plain))
    torch.testing.assert_close(fast, slow)
