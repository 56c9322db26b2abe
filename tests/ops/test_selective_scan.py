"""The selective scan against its loop: values and all gradients."""

import pytest
import torch

from lengthwise.ops.selective_scan import POSITIONS_PER_PART as C
from lengthwise.ops.selective_scan import decays_of, selective_scan, selective_scan_by_definition

LENGTHS = [1, 2, C - 1, C, C + 1, 3 * C + 5, 63]
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def draw(length: int, dtype: torch.dtype, batch_size: int = 3) -> list[torch.Tensor]:
    """Steps, rates, values, b, c and a first state, of which the gradients are compared."""
    generator = torch.Generator().manual_seed(length)
    shapes = [(batch_size, length, 5), (4, 5), (batch_size, length, 5)]
    shapes += [(batch_size, length, 4), (batch_size, length, 4), (batch_size, 4, 5)]
    drawn = [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]
    drawn[0], drawn[1] = drawn[0].square(), -drawn[1].exp()
    return [tensor.requires_grad_() for tensor in drawn]


@pytest.mark.parametrize("eigenvalues", ["positive", "signed"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("length", LENGTHS)
def test_buffers_give_what_the_loop_gives(
    length: int, dtype: torch.dtype, eigenvalues: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, compared = draw(length, dtype), []
    monkeypatch.setattr("lengthwise.ops.selective_scan.NUMBERS_PER_STEP", 40)  # two strings at a time, then the third
    for function in (selective_scan, selective_scan_by_definition):
        outputs, last = function(*given, eigenvalues=eigenvalues)
        weight = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
        gradients = torch.autograd.grad((outputs * weight).sum() + last.square().sum(), given)
        compared.append((outputs, last, *gradients))
    for one, other in zip(*compared, strict=True):
        assert float((one - other).detach().abs().max()) <= TOLERANCE[dtype] * max(1, float(other.detach().abs().max()))


@pytest.mark.parametrize("eigenvalues", ["positive", "signed"])
@pytest.mark.parametrize("max_tabled", [0, 1 << 17])
@pytest.mark.parametrize("length", LENGTHS)
def test_decays_of_rows_are_those_of_their_steps(
    length: int, max_tabled: int, eigenvalues: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, and so are the gradients: what is looked up was computed from the same numbers."""
    monkeypatch.setattr("lengthwise.ops.selective_scan.NUMBERS_PER_STEP", 40)
    monkeypatch.setattr("lengthwise.ops.selective_scan.MAX_TABLED", max_tabled)
    _, *given = draw(length, torch.float32)
    generator, compared = torch.Generator().manual_seed(1), []
    table = torch.rand(6, 5, generator=generator).requires_grad_()
    rows = torch.randint(6, (3, length), generator=generator)
    for looked_up in (None, (table, rows)):
        outputs, last = selective_scan(table[rows], *given, eigenvalues=eigenvalues, rows=looked_up)
        gradients = torch.autograd.grad(outputs.sum() + last.square().sum(), (table, *given))
        compared.append((outputs, last, *gradients))
    assert all(torch.equal(one, other) for one, other in zip(*compared, strict=True))


def test_gradients_are_derivatives() -> None:
    for eigenvalues in ("positive", "signed"):
        given = draw(3, torch.float64, batch_size=1)
        assert torch.autograd.gradcheck(lambda *all_six, e=eigenvalues: selective_scan(*all_six, eigenvalues=e), given)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_end_points_of_decays_are_exact(dtype: torch.dtype) -> None:
    exponents = torch.tensor([0.0, -1e-9 if dtype == torch.float32 else -1e-17, -1e3], dtype=dtype)
    assert decays_of(exponents, "positive").tolist() == [1, 1, 0]
    assert decays_of(exponents, "signed").tolist() == [1, 1, -1]
