"""Nets that were changed after they were made: `certify` says what is wrong, in one sentence, or certifies them."""

import copy
import itertools
from collections.abc import Callable, Iterator

import pytest
import torch
from proved_nets import NETS
from torch import nn

from lengthwise import certify
from lengthwise.models.base import SequenceModel


def mutilations(model: SequenceModel) -> Iterator[tuple[str, Callable[[SequenceModel], None]]]:
    """Delete, blank or reshape each weight, and take out each part."""
    for name, weight in model.named_parameters():
        path, _, leaf = name.rpartition(".")
        larger = nn.Parameter(torch.zeros([size + 1 for size in weight.shape]))
        longer = nn.Parameter(weight.detach()[..., None].clone())
        yield f"delete {name}", lambda net, path=path, leaf=leaf: delattr(net.get_submodule(path), leaf)
        yield (
            f"{name} has one axis more",
            lambda net, path=path, leaf=leaf, longer=longer: setattr(net.get_submodule(path), leaf, longer),
        )
        yield f"{name} is None", lambda net, path=path, leaf=leaf: setattr(net.get_submodule(path), leaf, None)
        yield (
            f"{name} is larger",
            lambda net, path=path, leaf=leaf, larger=larger: setattr(net.get_submodule(path), leaf, larger),
        )
    for name, _ in model.named_modules():
        path, _, leaf = name.rpartition(".")
        if name:
            yield f"delete {name}", lambda net, path=path, leaf=leaf: net.get_submodule(path)._modules.pop(leaf)
            for part in (None, nn.Identity()):
                yield (
                    f"{name} is {part}",
                    lambda net, path=path, leaf=leaf, part=part: net.get_submodule(path)._modules.update({leaf: part}),
                )
    for method in ("forward", "last", "last_state", "step", "states"):
        yield f"{method} returns text", lambda net, method=method: setattr(net, method, lambda *_: "text")


@pytest.mark.unchecked
@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.sampled(9)  # each case certifies many nets
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", NETS)
def test_a_mutilated_net_is_named_or_certified(kind: str, every: int) -> None:
    """Nets that every registered prover proves, and every kind of step.

    By default every fifth mutation, since each is a certificate; they come in cycles of four and of three.
    """
    made, task = NETS[kind]
    for what, mutilate in itertools.islice(mutilations(made), None, None, every):
        net = copy.deepcopy(made)
        mutilate(net)
        try:
            certify(net, task)
        except ValueError as problem:
            sentence = str(problem)
            assert "expected" in sentence, what
            assert "got" in sentence, what
            assert "; " in sentence, what
            assert "\n" not in sentence, what
