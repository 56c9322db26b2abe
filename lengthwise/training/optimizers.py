"""The optimizers of a recipe."""

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from lengthwise.models.base import SequenceModel
from lengthwise.models.capabilities import HasHiddenMatrices, HoldsDistributions
from lengthwise.training.baum_welch import BaumWelch
from lengthwise.training.muon import Muon
from lengthwise.training.recipe import Recipe

UNCOMPILED = ("add_param_group", "state_dict", "load_state_dict", "zero_grad")
"""Methods of torch's optimizers. The first call of such a method imports torch's compiler, only to exclude the method
from compilation."""


def make_optimizers(
    model: SequenceModel, recipe: Recipe, heads: Mapping[str, nn.Parameter]
) -> list[torch.optim.Optimizer]:
    """Make Baum-Welch, Adam or AdamW for all parameters, or Muon for hidden matrices and AdamW for the rest."""
    defer_compiler()
    settings = recipe.optimizer
    if settings.counts_outcomes:
        assert isinstance(model, HoldsDistributions), "check_model rejects others"
        counting = BaumWelch(
            model.distributions,
            relaxation=settings.relaxation,
            floor=settings.floor,
            prior=settings.prior,
            prior_by_size=settings.prior_by_size,
        )
        return _with_full_rates([counting])
    matrices: list[nn.Parameter] = []
    if settings.name == "muon":
        assert isinstance(model, HasHiddenMatrices), "check_model rejects others"
        matrices += model.hidden_matrices
    # Parameters are compared by identity, because `==` compares elements, and equal weights may be different
    # parameters.
    others = [p for p in (*model.parameters(), *heads.values()) if not any(p is matrix for matrix in matrices)]
    kind: type[torch.optim.Adam] = torch.optim.Adam if settings.name == "adam" else torch.optim.AdamW
    decay = settings.weight_decay
    optimizers: list[torch.optim.Optimizer] = [
        kind(others, lr=settings.learning_rate, betas=settings.betas, weight_decay=decay, fused=True)
    ]
    if matrices:
        optimizers.append(Muon(matrices, lr=settings.matrix_learning_rate, weight_decay=decay))
    return _with_full_rates(optimizers)


def _with_full_rates(optimizers: list[torch.optim.Optimizer]) -> list[torch.optim.Optimizer]:
    """Store each group's learning rate as `full_rate`, which training multiplies by the schedule's factor."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["full_rate"] = group["lr"]
    return optimizers


def defer_compiler() -> None:
    """Keep the optimizer methods `UNCOMPILED` from importing torch's compiler, as long as nothing else imports it.

    The import takes 70 MB and a second, as long as Baum-Welch takes to train a small net. Once something else has
    imported the compiler, such as the first step of Adam, the methods are excluded from compilation as usual.
    """
    for name in UNCOMPILED:
        # A version of torch without this private attribute has no wrapped method, and imports the compiler as before.
        method = getattr(getattr(torch.optim.Optimizer, name), "__wrapped__", None)
        if method is not None and not hasattr(method, _EXCLUDED):
            setattr(method, _EXCLUDED, _excluded_if_imported(method))


_EXCLUDED = "__dynamo_disable"
"""The name of the attribute of a method that contains the version which torch's compiler skips."""


def _excluded_if_imported(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return method(*args, **kwargs)
        excluded = torch.compiler.disable(method)
        setattr(method, _EXCLUDED, excluded)
        return excluded(*args, **kwargs)

    return called
