"""Muon: its updates equal those of torch, and it moves hidden matrices only."""

import pytest
import torch
from small_training import small_recipe, small_state

from lengthwise.models import MODELS, make_model
from lengthwise.models.capabilities import HasHiddenMatrices
from lengthwise.presets import PRESETS
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.training.loop import (
    TrainingState,
)
from lengthwise.training.muon import MIN_NORM, Muon, orthogonalized
from lengthwise.training.recipe import Recipe
from lengthwise.validation import validated

NO_HIDDEN_MATRICES = [name for name in MODELS if not issubclass(MODELS[name], HasHiddenMatrices)]


@pytest.mark.parametrize("name", NO_HIDDEN_MATRICES)
def test_muon_is_rejected_where_it_would_move_nothing(name: str) -> None:
    """A recipe names the optimizer that runs: AdamW never takes the place of Muon."""
    sentence = f"train.optimizer.name: expected 'adamw' or 'adam' for {name}, which names no hidden .*got 'muon'"
    with pytest.raises(ValueError, match=sentence):
        make_spec("parity", name, {}, preset="plain")
    with pytest.raises(ValueError, match=sentence):
        TrainingState(make_model(name, make_task("parity")), validated(Recipe, PRESETS["plain"].train))
    assert make_spec("parity", name, {}).recipe.optimizer.name == "adamw"


@pytest.mark.parametrize("shape", [(5, 5), (12, 4), (4, 12)])
def test_muon_equals_that_of_torch_up_to_its_bfloat16(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.ones(shape)) for _ in range(2))
    settings = {"lr": 0.1, "weight_decay": 0.1}
    optimizers = [Muon([ours], **settings), torch.optim.Muon([theirs], **settings)]
    for _ in range(4):
        ours.grad = torch.randn(shape, generator=generator)
        theirs.grad = ours.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.01)


@pytest.mark.parametrize("shape", [(1, 1), (3, 8), (8, 3), (64, 64)])
def test_orthogonalised_keeps_singular_vectors(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    rotated = left.T @ orthogonalized(matrix) @ right.T
    torch.testing.assert_close(rotated, torch.diag(rotated.diagonal()), rtol=0, atol=1e-9)
    assert (rotated.diagonal()[values > 0.1 * values[0]] > 0.6).all()
    assert (rotated.diagonal() < 1.3).all()
    assert not orthogonalized(torch.zeros(shape)).any()


def test_updates_of_muon_vanish_with_the_gradient() -> None:
    """Below the least norm they are proportional to it, above they do not depend on its size."""
    gradient = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    gradient /= gradient.norm()
    moved = {}
    for norm in (1e-3 * MIN_NORM, 100 * MIN_NORM, 1.0):
        matrix = torch.nn.Parameter(torch.zeros(8, 4))
        matrix.grad = norm / (1 - 0.95**2) * gradient  # Nesterov's first update is this share of it
        Muon([matrix], lr=0.1).step()
        moved[norm] = float(matrix.detach().norm())
    assert moved[1.0] == pytest.approx(moved[100 * MIN_NORM], rel=1e-4)
    assert moved[1e-3 * MIN_NORM] == pytest.approx(1e-3 * moved[1.0], rel=1e-3)


def test_muon_moves_the_hidden_matrices_only() -> None:
    task = make_task("parity")
    state = small_state(task, small_recipe())
    adamw, muon = state.optimizers
    moved = [[id(p) for group in optimizer.param_groups for p in group["params"]] for optimizer in (adamw, muon)]
    assert sorted(moved[0] + moved[1]) == sorted(id(p) for p in state.model.parameters())
    assert set(moved[1]) == {id(p) for p in state.model.hidden_matrices}
    assert len(small_state(task, small_recipe(optimizer={"name": "adamw"})).optimizers) == 1
