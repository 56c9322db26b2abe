"""What every registered model promises, whatever its name."""

import re
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from lengthwise.certification.methods.base import highest_level
from lengthwise.conventions import PAD
from lengthwise.models import MODELS, RecurrentModel, SequenceModel, make_model
from lengthwise.models.base import ModelConfig, outline
from lengthwise.models.capabilities import (
    AcceptsNoise,
    AcceptsPads,
    AcceptsVectors,
    BoundsSteps,
    DrawsInTraining,
    FollowsTraining,
    HasHiddenMatrices,
    HasPenalty,
)
from lengthwise.ops.intervals import Intervals
from lengthwise.presets import PRESETS
from lengthwise.registry import is_of_package
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.tasks.base import Batch
from lengthwise.training.losses import step_loss

LENGTHS = (1, 2, 7, 63)


@pytest.fixture(params=list(MODELS))
def name(request) -> str:
    return request.param


def that_are(capability: type) -> pytest.MarkDecorator:
    """The models with a capability, as the fixture `name`."""
    return pytest.mark.parametrize("name", [name for name in MODELS if issubclass(MODELS[name], capability)])


def that_are_not(capability: type) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [name for name in MODELS if not issubclass(MODELS[name], capability)])


def make(name: str, seed: int = 0) -> SequenceModel:
    model = MODELS[name]
    generator = torch.Generator().manual_seed(seed)
    return model(model.Config(), vocab_size=3, num_classes=5, generator=generator)


def test_a_model_that_inherits_from_it_may_have_further_settings(name: str) -> None:
    """Layers get only the settings that they know."""
    kind = MODELS[name]
    config = type("Config", (kind.Config,), {"__annotations__": {"extra": int}, "extra": 1, "__module__": __name__})
    derived = type("Derived", (kind,), {"Config": config})
    assert derived(config(), vocab_size=3, num_classes=5).config.extra == 1


def draw(length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(3, (4, length), generator=torch.Generator().manual_seed(seed))


def assert_same(model: SequenceModel, *both: torch.Tensor) -> None:
    """Compare two computations of the same logits, and the gradients of all parameters."""
    torch.testing.assert_close(*both)
    parameters = list(model.parameters())
    torch.testing.assert_close(
        *(torch.autograd.grad(logits.square().sum(), parameters, materialize_grads=True) for logits in both)
    )


def test_goals_are_checked_without_numbers(name: str) -> None:
    """Which level training may reach is known of an outline, before there is a net."""
    task, config = make_task("parity"), MODELS[name].Config()
    assert highest_level(outline(name, config, task)) == highest_level(make_model(name, task))


@pytest.mark.sampled
@pytest.mark.parametrize("length", LENGTHS)
def test_answers_every_prefix_of_any_length(name: str, length: int) -> None:
    with torch.no_grad():
        logits = make(name)(draw(length))
    assert logits.shape == (4, length, 5)
    assert logits.isfinite().all()


@pytest.mark.parametrize("length", LENGTHS)
def test_last_is_the_last_of_forward(name: str, length: int) -> None:
    model, inputs = make(name).double(), draw(length)
    assert_same(model, model.last(inputs), model(inputs)[:, -1])


def test_is_causal(name: str) -> None:
    """Position t answers the prefix that ends at t: what comes later changes nothing."""
    model, inputs = make(name).double(), draw(20)
    changed = torch.cat([inputs[:, :9], (inputs[:, 9:] + 1) % 3], 1)
    with torch.no_grad():
        torch.testing.assert_close(model(inputs)[:, :9], model(changed)[:, :9])


def test_strings_of_a_batch_do_not_mix(name: str) -> None:
    model, inputs = make(name).double(), draw(20)
    with torch.no_grad():
        together, alone = model.last(inputs), torch.cat([model.last(row[None]) for row in inputs])
    torch.testing.assert_close(together, alone)


def test_parameters_come_from_the_generator_alone(name: str) -> None:
    torch.manual_seed(1)
    one = make(name).state_dict()
    torch.manual_seed(2)
    same, other = make(name).state_dict(), make(name, seed=1).state_dict()
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


def test_parameters_are_all_drawn_again(name: str) -> None:
    model = make(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    model.reset_parameters(torch.Generator().manual_seed(0))
    fresh = make(name).state_dict()
    assert all(torch.equal(fresh[key], tensor) for key, tensor in model.state_dict().items())


def test_seeds_name_the_parameters(name: str) -> None:
    task = make_task("parity")
    one, same, other = (make_model(name, task, seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


def test_every_parameter_gets_a_gradient_somewhere(name: str) -> None:
    model = make(name)
    model(draw(9)).logsumexp(-1).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def with_a_pad() -> torch.Tensor:
    inputs = draw(9)
    inputs[:, 3] = PAD
    return inputs


@that_are(AcceptsPads)
def test_pads_are_accepted(name: str) -> None:
    assert make(name).last(with_a_pad()).isfinite().all()
    assert make(name).pad_block >= 1


@that_are_not(AcceptsPads)
def test_pads_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="inputs: expected"):
        make(name).last(with_a_pad())


def vector_task():
    return make_task("decision-tree", depth=2, dims=3, max_points=9)


@that_are_not(AcceptsVectors)
def test_vectors_are_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=f"got {name}, which reads symbols; choose from"):
        make_model(name, vector_task())


@that_are(AcceptsVectors)
def test_vectors_are_accepted(name: str) -> None:
    task = vector_task()
    model, inputs = make_model(name, task).double(), task.sample(4, 9, torch.Generator().manual_seed(0)).inputs.double()
    answers = model(inputs)
    assert answers.shape == (4, 17, 1)
    torch.testing.assert_close(model(inputs[:, :7]), answers[:, :7])
    assert_same(model, model.last(inputs), answers[:, -1])
    for wrong in (inputs[..., :2], inputs[:, :0], inputs / 0):
        with pytest.raises(ValueError, match="inputs: expected"):
            model(wrong)


@pytest.mark.parametrize("length", LENGTHS)
def test_one_position_of_each_row_is_what_forward_has_there(name: str, length: int) -> None:
    model, inputs = make(name).double(), draw(length)
    indices = torch.tensor([0, length - 1, length // 2, length // 3])
    assert_same(model, model.logits_at(inputs, indices), model(inputs)[torch.arange(4), indices])


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("indices", "got"),
    [
        (torch.tensor([0, 1, 2, -1]), "got -1"),
        (torch.tensor([0, 1, 2, 7]), "got 7"),
        (torch.tensor([0, 1, 2]), r"got \[3\] of torch.int64"),
        (torch.tensor([[0, 1, 2, 3]]), r"got \[1, 4\] of torch.int64"),
        (torch.tensor([0.0, 1.0, 2.0, 3.0]), r"got \[4\] of torch.float32"),
        ([0, 1, 2, 3], "got a list"),
    ],
)
def test_positions_outside_the_strings_are_rejected(name: str, indices: Any, got: str) -> None:
    with pytest.raises(ValueError, match=f"indices: expected .*, {got}; "):
        make(name).logits_at(draw(7), indices)


@that_are(BoundsSteps)
@pytest.mark.parametrize("radius", [0.0, 0.1])
@torch.no_grad()
def test_steps_lie_within_their_bounds_and_reach_far_into_them(name: str, radius: float) -> None:
    model, token, generator = make(name).double(), torch.arange(2).repeat(3), torch.Generator().manual_seed(0)
    state = model.initial_state(6) + torch.randn(model.initial_state(6).shape, generator=generator)
    bounds = model.bounds_after(Intervals.around(state, radius), token)
    inside = [model.step(token, state + radius * (2 * torch.rand_like(state) - 1).sign())[1] for _ in range(64)]
    low, high = torch.stack(inside).amin(0), torch.stack(inside).amax(0)
    assert bool(((bounds.low <= low) & (high <= bounds.high)).all())
    if radius:
        assert float(((high - low) / (bounds.high - bounds.low)).nan_to_num(0).max()) > 0.5
    else:
        assert float(bounds.radius.max()) < 1e-3


@that_are(AcceptsNoise)
def test_perturbations_change_answers_and_the_model_itself_stays_as_it_was(name: str) -> None:
    model, inputs = make(name).double(), draw(33)

    def reverse(states: torch.Tensor) -> torch.Tensor:
        return states.flip(-1)

    before = model.last(inputs)
    perturbed = model.perturbed(reverse)
    assert not torch.allclose(before, perturbed.last(inputs))
    torch.testing.assert_close(perturbed.last(inputs), perturbed(inputs)[:, -1])
    assert torch.equal(model.last(inputs), before)
    assert all(one is other for one, other in zip(model.parameters(), perturbed.parameters(), strict=True))


@that_are(DrawsInTraining)
def test_a_model_that_draws_has_the_same_parameters_and_stays_as_it_was(name: str) -> None:
    model, inputs = make(name), draw(9)
    before, generator = model(inputs), torch.Generator().manual_seed(0)
    drawing = model.drawing(generator)
    assert drawing(inputs).isfinite().all()
    assert (drawing.generator, model.generator) == (generator, None)
    assert all(one is other for one, other in zip(model.parameters(), drawing.parameters(), strict=True))
    assert torch.equal(model(inputs), before)


@that_are(HasHiddenMatrices)
def test_hidden_matrices_are_parameters_of_the_model(name: str) -> None:
    model = make(name)
    parameters = {id(parameter) for parameter in model.parameters()}
    assert model.hidden_matrices
    assert all(matrix.ndim == 2 and id(matrix) in parameters for matrix in model.hidden_matrices)


@that_are(HasPenalty)
def test_a_penalty_is_a_number_that_weights_make(name: str) -> None:
    model, inputs = make(name), draw(9)
    penalty = model.penalty()
    assert penalty.isfinite()
    assert float(penalty.detach()) > 0
    gradients = torch.autograd.grad(penalty, list(model.parameters()), allow_unused=True)
    assert any(gradient is not None and bool(gradient.any()) for gradient in gradients)
    spec, batch = make_spec("parity", name, {}), Batch(inputs, torch.zeros_like(inputs))
    loss = step_loss(model, None, batch, spec.task, spec.recipe, 0, torch.Generator())
    torch.testing.assert_close(loss.minimized - loss.learned, penalty, rtol=0.0, atol=1e-6)


@that_are(FollowsTraining)
def test_training_ends_in_another_net_than_it_began_with(name: str) -> None:
    model, answers = make(name), []
    for fraction in (0.0, 0.999):
        model.set_progress(fraction)
        answers.append(model(draw(9)))
    assert not torch.allclose(*answers)


def test_config_is_frozen_and_rejects_unknown_settings(name: str) -> None:
    config = MODELS[name].Config()
    field = next(iter(MODELS[name].Config.model_fields))
    with pytest.raises(ValidationError):
        setattr(config, field, 1)
    with pytest.raises(ValueError, match=f"model.{field}x: no such setting; did you mean '{field}'"):
        make_model(name, make_task("parity"), **{f"{field}x": 1})


def test_default_presets_train_their_models(name: str) -> None:
    assert MODELS[name].default_preset in PRESETS
    assert (
        make_spec("parity", name, {}).recipe == make_spec("parity", name, {}, preset=MODELS[name].default_preset).recipe
    )


@pytest.mark.unchecked
@that_are(RecurrentModel)
def test_steps_reject_states_of_other_strings(name: str) -> None:
    model = make(name)
    state = model.initial_state(2)
    for wrong, expected in (
        *((other, r"shape \[2, \d+\]") for other in (state[:1], state[:, 1:], state[0])),
        (state.half(), "the model's dtype torch.float32"),
    ):
        try:
            model.step(torch.tensor([0, 1]), wrong)
        except (ValueError, RuntimeError) as error:
            message = str(error)
        else:
            message = "no error"
        pattern = rf"state: expected {expected}, got .*; begin with model.initial_state\(2\)"
        assert re.match(pattern, message), "step has to begin with self.check_step(token, state, num_symbols)"


@pytest.mark.unchecked
@that_are(RecurrentModel)
def test_first_states_are_for_a_number_of_strings(name: str) -> None:
    for wrong in (-1, 1.5, "a", True, 10**12):
        with pytest.raises(ValueError, match=r"^batch_size: expected a whole number from 0 to 4,294,967,296, got "):
            make(name).initial_state(wrong)


@pytest.mark.unchecked
def test_states_are_a_tensor(name: str) -> None:
    with pytest.raises(ValueError, match=r"^states: expected a tensor, got a list; "):
        make(name).logits_of([[0.0]])


@pytest.mark.unchecked
@pytest.mark.parametrize("name", [name for name in MODELS if is_of_package(MODELS[name])])
def test_models_are_made_from_their_config_and_a_generator(name: str) -> None:
    kind = MODELS[name]
    for wrong in ({}, None, ModelConfig()):
        with pytest.raises(ValueError, match=f"^config: expected an? {kind.Config.__name__}, got .*; give one$"):
            kind(wrong, vocab_size=3, num_classes=5)
    with pytest.raises(ValueError, match=r"^generator: expected a torch.Generator, got 3; give one$"):
        kind(kind.Config(), vocab_size=3, num_classes=5, generator=3)
    with pytest.raises(ValueError, match=r"^task: expected a task, got <class .*; make one with make_task$"):
        make_model(name, type(make_task("parity")))


@pytest.mark.sampled
@pytest.mark.parametrize("foreign", [3, 99, PAD - 1])
def test_foreign_symbols_are_rejected(name: str, foreign: int) -> None:
    inputs = draw(9)
    inputs[1, 3] = foreign
    with pytest.raises(ValueError, match="inputs: expected"):
        make(name)(inputs)


def test_an_empty_string_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="length"):
        make(name).last(torch.zeros(2, 0, dtype=torch.int64))


@that_are(RecurrentModel)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.sampled
def test_steps_give_what_forward_gives(name: str, length: int) -> None:
    model, inputs = make(name).double(), draw(length)
    state, logits = model.initial_state(len(inputs)), []
    for token in inputs.unbind(1):
        answers, state = model.step(token, state)
        logits.append(answers)
    assert_same(model, torch.stack(logits, 1), model(inputs))


@that_are(RecurrentModel)
@pytest.mark.parametrize("foreign", [3, PAD])
def test_steps_reject_foreign_symbols(name: str, foreign: int) -> None:
    model = make(name)
    with pytest.raises(ValueError, match="inputs: expected"):
        model.step(torch.tensor([0, foreign]), model.initial_state(2))
