"""Promises of the bounds on steps of every registered kind of recurrent model, whatever its name."""

import copy
from collections.abc import Iterator
from functools import cache

import pytest
import torch
from read_nets import Net, nets
from torch import nn

from lengthwise.certification.methods.base import highest_level
from lengthwise.certification.methods.steps import STEPS, Steps, steps_of
from lengthwise.models.base import RecurrentModel
from lengthwise.ops.intervals import Intervals

RADII = (0.0, 1e-3, 0.1, 1.0)
"""The radii of the intervals around states."""

SCALES = (1.0, 4.0)
"""The factors of all weights: the larger one saturates units."""

NUM_POINTS = 32
"""The number of states that are drawn in each interval; half of them are corners."""


@pytest.fixture(params=list(STEPS))
def name(request) -> str:
    return request.param


@cache
def nets_of(name: str) -> tuple[Net, ...]:
    """Return nets of this kind."""
    chosen = tuple(net for net in nets() if type(net.model) is STEPS[name].kind)
    assert chosen, f"no net has bounds {name!r} on its steps; add one to tests/proved_nets.py"
    return chosen


@pytest.fixture
def model(name: str) -> RecurrentModel:
    """The first net of this kind, which a test may change."""
    return copy.deepcopy(nets_of(name)[0].model)


def scaled_nets(name: str) -> Iterator[RecurrentModel]:
    for net in nets_of(name):
        for factor in SCALES:
            model = copy.deepcopy(net.model)
            for parameter in model.parameters():
                parameter *= factor
            yield model


def test_they_have_the_name_of_their_kind_of_model_and_are_described(name: str) -> None:
    assert issubclass(STEPS[name], Steps)
    assert STEPS[name].name == STEPS[name].kind.name == name
    assert STEPS[name].__doc__


def test_nets_of_their_kind_can_be_proved(name: str) -> None:
    assert all(highest_level(net.model) == "proved" for net in nets_of(name))


@torch.no_grad()
def test_steps_and_leads_stay_within_their_bounds(name: str) -> None:
    """States in the middle, near the ends and at the corners of intervals, after each symbol and for each answer."""
    generator = torch.Generator().manual_seed(0)
    for model in scaled_nets(name):
        steps = steps_of(model)
        centers = model.last_state(torch.randint(2, (4, 5), generator=generator)).double()
        for radius in RADII:
            offsets = 2 * torch.rand(NUM_POINTS, *centers.shape, generator=generator, dtype=torch.float64) - 1
            offsets[: NUM_POINTS // 2] = offsets[: NUM_POINTS // 2].sign()
            points = (centers + 0.99 * radius * offsets).to(next(model.parameters()).dtype)
            enclosures = Intervals.around(centers, radius + 1e-5)
            for symbol in range(2):
                bounds = steps.after(enclosures, symbol)
                _, after = model.step(torch.full((4 * NUM_POINTS,), symbol), points.flatten(0, 1))
                within = after.double().unflatten(0, (NUM_POINTS, 4))
                assert bool(((bounds.low <= within) & (within <= bounds.high)).all())
                logits = model.readout(after).double()
                for answer in range(2):
                    lead = float((logits[:, answer] - logits[:, 1 - answer]).min())
                    assert steps.margin(bounds, torch.full((4,), answer)) <= lead


@torch.no_grad()
def test_no_answer_leads_if_float32_may_overflow(name: str, model: RecurrentModel) -> None:
    states = Intervals.around(model.last_state(torch.tensor([[0], [1]])).double(), 1e-3)
    answers = model.readout(states.center.float()).argmax(-1)
    steps_of(model).logits.weight *= 1e38
    steps_of(model).logits.weight += 3e38
    assert not steps_of(model).margin(states, answers) > 0


def test_a_subclass_may_compute_something_else_and_has_no_bounds(model: RecurrentModel) -> None:
    model.__class__ = type("Further", (type(model),), {})
    with pytest.raises(ValueError, match=r"got a Further; certify a model from this list$"):
        steps_of(model)


def test_a_part_of_another_kind_has_no_bounds(name: str, model: RecurrentModel) -> None:
    assert {type(part) for part in [*model.modules()][1:]} <= STEPS[name].parts
    model.further = nn.Bilinear(1, 1, 1)
    with pytest.raises(ValueError, match=r"got Bilinear; build the model without these parts$"):
        steps_of(model)


def test_a_weight_that_torch_does_not_use_has_no_bounds(model: RecurrentModel) -> None:
    """The kernel of a cell multiplies by tensors of its own list, which need not be the parameters."""
    cells = [path for path, part in model.named_modules() if isinstance(part, nn.RNNBase)]
    for path in cells:
        other = copy.deepcopy(model)
        used = other.get_submodule(path)._flat_weights
        used[0] = used[0].clone()
        with pytest.raises(ValueError, match=r"got a cell that uses other tensors or another order; "):
            steps_of(other)
