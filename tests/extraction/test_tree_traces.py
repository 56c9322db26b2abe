"""Trees over strings, and the traces that are compared on them."""

import pytest
import torch

from lengthwise.extraction.tree_traces import Trees, build_trees, root_answers
from lengthwise.models import make_model
from lengthwise.models.base import SequenceModel, TreeModel
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.tasks import make_task


def accumulated_rounding(model: TreeModel, trees: Trees) -> torch.Tensor:
    """How far rounding can move each root, to first order: a number for each string.

    Every merge adds some units for each term of its sums to what its Jacobian makes of the errors of its parts.
    """
    states = model.tree.leaves.detach()
    errors = torch.zeros(len(states), dtype=states.dtype)
    of_one_merge = 100 * states.shape[1] * torch.finfo(states.dtype).eps
    for level in trees.levels:
        parts = states[level.windows].requires_grad_()
        merged = merge_windows(model.tree.layers[0], parts)
        rows = [torch.autograd.grad(merged[:, d].sum(), parts, retain_graph=True)[0] for d in range(merged.shape[1])]
        gains = torch.linalg.matrix_norm(torch.stack(rows, 2), 2)  # of the Jacobians [windows, parts, D, D]
        errors = (gains * errors[level.windows]).sum(1) + of_one_merge
        states = level.states
    return errors[trees.roots]


@pytest.mark.parametrize(("chunk_size", "length"), [(2, 1), (2, 37), (3, 100), (2, 500)])
def test_roots_are_the_models_own_states(chunk_size: int, length: int) -> None:
    """Nodes over equal windows are one, and yet each root is the state of the whole string but for rounding.

    Another order of sums is another rounding, which every level enlarges: the tolerance is what the levels can make of
    it. In float64 that stays far below the distance of two states.
    """
    task = make_task("tomita", index=4)
    model = make_model("regular-gpt", task, d_model=16, num_heads=4, chunk_size=chunk_size).double()
    strings = task.sample(30, length, torch.Generator().manual_seed(length)).inputs
    assert isinstance(model, SequenceModel)
    assert isinstance(model, TreeModel)
    trees = build_trees(model, strings)
    tolerance = 2 * accumulated_rounding(model, trees)  # both are rounded
    assert float(tolerance.max()) < 1e-4
    with torch.no_grad():
        states, logits = trees.levels[-1].states[trees.roots], model.last(strings)
        assert bool(((states - model.last_state(strings)).norm(dim=1) <= tolerance).all())
        assert bool(((logits[:, 0] - logits[:, 1]).abs() > tolerance).all())  # no answer hangs on a bit
        assert torch.equal(root_answers(model, [trees]), logits.argmax(-1))
