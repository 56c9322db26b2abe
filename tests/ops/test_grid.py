import pytest
import torch

from lengthwise.ops.grid import antidiagonals, grid_by_definition, last_row
from lengthwise.ops.integer_answers import integer_loss, integer_loss_by_definition

SHAPES = [(1, 1), (1, 7), (7, 1), (3, 5), (9, 4), (6, 6), (1, 63), (63, 5)]
WIDTH = 3


def drawn(height: int, width: int):
    """Weights of a cell, messages at the borders and two strings."""
    generator = torch.Generator().manual_seed(100 * height + width)
    weights, top, left = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((WIDTH, WIDTH, 2, 2, 2 * WIDTH), (WIDTH,), (WIDTH,))
    )
    first, second = (torch.randint(2, (4, length), generator=generator) for length in (height, width))
    return weights, top, left, first, second


def cell_of(weights: torch.Tensor):
    def cell(above, left, a, b):
        both = torch.einsum("np,nq,npqk->nk", above, left, weights[:, :, a, b].permute(2, 0, 1, 3)).tanh()
        return both[:, :WIDTH], both[:, WIDTH:]

    return cell


def assembled(weights, top, left, first, second):
    downs, rights = (torch.empty(4, first.shape[1], second.shape[1], WIDTH, dtype=torch.float64) for _ in range(2))
    for diagonal, part in enumerate(antidiagonals(cell_of(weights), top, left, first, second)):
        rows = torch.arange(part.start, part.start + part.down.shape[1])
        downs[:, rows, diagonal - rows], rights[:, rows, diagonal - rows] = part.down, part.right
    return downs, rights


@pytest.mark.parametrize(("height", "width"), SHAPES)
def test_antidiagonals_are_the_messages_of_the_definition_and_have_its_gradients(height: int, width: int) -> None:
    weights, top, left, first, second = drawn(height, width)
    both = [
        assembled(weights, top, left, first, second),
        grid_by_definition(cell_of(weights), top, left, first, second),
    ]
    torch.testing.assert_close(*both)
    factors = [torch.linspace(-1, 1, part.numel(), dtype=torch.float64).view_as(part) for part in both[0]]
    sums = [sum((part * factor).sum() for part, factor in zip(parts, factors, strict=True)) for parts in both]
    torch.testing.assert_close(*(torch.autograd.grad(total, (weights, top, left)) for total in sums))


@pytest.mark.parametrize(("height", "width"), [*SHAPES, (0, 3), (3, 0)])
def test_the_last_row_is_that_of_each_height(height: int, width: int) -> None:
    weights, top, left, first, second = drawn(height, width)
    heights = torch.tensor([height, 0, height // 2, max(0, height - 1)])
    row = last_row(cell_of(weights), top, left, first, second, heights)
    assert row.shape == (4, width, WIDTH)
    if height and width:
        downs, _ = grid_by_definition(cell_of(weights), top, left, first, second)
        with_border = torch.cat([top.expand(4, 1, width, WIDTH), downs], 1)
        expected = with_border[torch.arange(4), heights]
        torch.testing.assert_close(row, expected)
        factor = torch.linspace(-1, 1, row.numel(), dtype=torch.float64).view_as(row)
        given = (weights, top, left)
        torch.testing.assert_close(
            *(torch.autograd.grad((part * factor).sum(), given, retain_graph=True) for part in (row, expected))
        )


def test_messages_may_be_classes() -> None:
    table = torch.randint(3, (3, 3, 2, 2, 2), generator=torch.Generator().manual_seed(0))
    first, second = torch.tensor([[0, 1, 1, 0]]), torch.tensor([[1, 0, 1]])

    def cell(above, left, a, b):
        return table[above, left, a, b].unbind(-1)

    downs, _ = grid_by_definition(cell, torch.tensor(1), torch.tensor(2), first, second)
    row = last_row(cell, torch.tensor(1), torch.tensor(2), first, second, torch.tensor([4]))
    assert torch.equal(row, downs[:, -1])


@pytest.mark.parametrize("sharpness", [1.0, 4.0])
def test_the_loss_of_integers_is_a_cross_entropy_and_has_its_gradient(sharpness: float) -> None:
    generator = torch.Generator().manual_seed(0)
    numbers = (10 * torch.randn(50, generator=generator, dtype=torch.float64)).requires_grad_()
    targets = torch.randint(-5, 20, (50,), generator=generator)
    losses = [form(numbers, targets, sharpness=sharpness) for form in (integer_loss, integer_loss_by_definition)]
    # What is left out is a share of exp(-sharpness (3.5^2 - 0.5^2)) of each sum, at most, on either side.
    tolerance = 4 * float(torch.tensor(-12.0 * sharpness).exp()) + 1e-11
    torch.testing.assert_close(*losses, rtol=0, atol=tolerance)
    gradients = [torch.autograd.grad(loss, numbers)[0] for loss in losses]
    torch.testing.assert_close(*gradients, rtol=0, atol=10 * sharpness * tolerance)


def test_the_loss_of_integers_is_zero_at_the_target_alone() -> None:
    targets = torch.tensor([-1, 0, 7])
    assert integer_loss(targets.float(), targets, sharpness=4.0) == 0
    for step in (-1.0, 1.0):
        assert integer_loss(targets + step, targets, sharpness=4.0) == pytest.approx(4.0, rel=1e-5)
