"""Loops that follow the length or the states: the definition, prefixes, batches, and what is rejected."""

from typing import Any

import pytest
import torch

from lengthwise.models.looped_transformer import LoopedTransformer, LoopedTransformerConfig
from lengthwise.runs.result import takes_probes
from lengthwise.runs.spec import make_spec

KINDS: dict[str, dict[str, Any]] = {
    "fixed": {"loops": "fixed", "num_loops": 3},
    "length, code": {"loops": "length", "num_loops": 1, "variant": "code"},
    "length, control": {"loops": "length", "num_loops": 2, "variant": "control", "gates": "open"},
    "length, index": {"loops": "length", "num_loops": 1},
    "length, fraction": {"loops": "length", "num_loops": 1, "time": "fraction", "gates": "open"},
    "converged, control": {"loops": "converged", "variant": "control", "max_loops": 40},
    "converged, index": {"loops": "converged", "max_loops": 25},
}


@pytest.fixture(params=list(KINDS))
def kind(request) -> str:
    return request.param


def make(kind: str, *, spread: float = 0.1, seed: int = 0, **settings: Any) -> LoopedTransformer:
    """A small model in float64, in evaluation; every parameter is drawn, so that gates are open a little."""
    sizes = {"d_model": 8, "num_heads": 2, "injection": "input", "positions": "alibi"}
    config = LoopedTransformerConfig(**(sizes | KINDS[kind] | settings))
    model = LoopedTransformer(config, vocab_size=6, num_classes=4, generator=torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += spread * torch.randn(parameter.shape, generator=generator)
    return model.double().eval()


def draw(length: int = 9, batch_size: int = 3) -> torch.Tensor:
    return torch.randint(6, (batch_size, length), generator=torch.Generator().manual_seed(2))


def defined(model: LoopedTransformer, inputs: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model.readout(model.states_by_definition(model.read_in(inputs)))
    return logits


def gradients(model: LoopedTransformer, logits: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(logits.square().sum(), list(model.parameters()), materialize_grads=True)


# At 63 symbols, the definition loops over every prefix by itself, which takes 15 CPU s.
@pytest.mark.parametrize("length", [1, 2, 7, pytest.param(63, marks=pytest.mark.slow)])
@pytest.mark.sampled
def test_answers_and_gradients_are_those_of_the_definition(kind: str, length: int) -> None:
    model, inputs = make(kind), draw(length)
    fast, slow = model(inputs), defined(model, inputs)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(gradients(model, fast), gradients(model, slow))
    torch.testing.assert_close(model.last(inputs), slow[:, -1])
    torch.testing.assert_close(gradients(model, model.last(inputs)), gradients(model, defined(model, inputs)[:, -1]))


@pytest.mark.parametrize("kind", ["length, index", "converged, control"])
@torch.no_grad()
def test_long_strings_are_answered_by_the_definition(kind: str) -> None:
    """Where states are taken down in one pass; beyond the lengths of the recipe's training."""
    model, inputs = make(kind), draw(63, batch_size=1)
    torch.testing.assert_close(model(inputs), defined(model, inputs))


def test_gradients_of_a_long_string_are_those_of_the_definition() -> None:
    model, inputs = make("length, index"), draw(63, batch_size=1)
    slow = model.readout(model._last_by_definition(model.read_in(inputs)))
    torch.testing.assert_close(gradients(model, model(inputs)[:, -1]), gradients(model, slow))


@pytest.mark.parametrize("kind", ["fixed", "length, code", "length, control", "length, index", "length, fraction"])
@torch.no_grad()
def test_float32_is_as_near_as_its_digits(kind: str) -> None:
    """A loop of 9 positions of 8 numbers rounds a few hundred times, at 2^-24 each; at most 18 loops add up."""
    model, inputs = make(kind), draw()
    exact = defined(model, inputs)
    torch.testing.assert_close(model.float()(inputs).double(), exact, rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_an_answer_is_that_to_the_prefix_alone(kind: str) -> None:
    model, inputs = make(kind), draw()
    answers = model(inputs)
    for length in range(1, 10):
        torch.testing.assert_close(model.last(inputs[:, :length]), answers[:, length - 1])
    indices = torch.tensor([7, 0, 4])
    torch.testing.assert_close(model.logits_at(inputs, indices), answers[torch.arange(3), indices])


@torch.no_grad()
def test_answers_do_not_depend_on_other_strings(kind: str) -> None:
    model, inputs = make(kind), draw(batch_size=8)
    alone = torch.cat([model(row[None]) for row in inputs])
    torch.testing.assert_close(model(inputs), alone)


@pytest.mark.parametrize("kind", ["length, code", "length, control", "length, index"])
@torch.no_grad()
def test_loops_by_length_are_as_many_loops_as_symbols(kind: str) -> None:
    """The other route: a model with this number of loops, which was told so."""
    model, inputs = make(kind), draw()
    for length in (1, 2, 9):
        fixed = model.with_loops(model.config.num_loops * length, "fixed")
        torch.testing.assert_close(fixed.last(inputs[:, :length]), model(inputs)[:, length - 1])


@torch.no_grad()
def test_every_prefix_stops_at_its_first_loop_without_change() -> None:
    """The other route: states after every fixed number of loops. Prefixes of a batch stop after different numbers."""
    model, inputs = make("converged, control", spread=0.2), draw(batch_size=8)
    read = model.read_in(inputs)
    states = torch.stack([model.with_loops(number, "fixed").states(read) for number in range(1, 41)])
    changes = (states[1:] - states[:-1]).norm(dim=-1) / states[1:].norm(dim=-1)
    settled = (changes <= 1e-3).cummin(-1).values
    assert bool(settled.any(0).all())
    stops = settled.int().argmax(0)
    assert len(stops.unique()) > 2
    expected = states[1:].gather(0, stops[None, ..., None].expand(1, *states.shape[1:]))[0]
    torch.testing.assert_close(model.states(read), expected)
    assert torch.equal(model.with_loops(loops="length").states(read), model.train().states(read))


@torch.no_grad()
def test_states_that_never_settle_end_with_the_last_loop() -> None:
    model = make("converged, index", tolerance=1e-15)
    read = model.read_in(draw())
    torch.testing.assert_close(model.states(read), model.with_loops(25, "fixed").states(read))


@pytest.mark.parametrize("kind", ["length, code", "length, control", "length, index", "length, fraction"])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_recomputed_activations_give_the_same_gradients(kind: str, length: int) -> None:
    results = []
    for activations in ("kept", "recomputed"):
        model, inputs = make(kind, activations=activations), draw(length)
        logits = torch.cat([model(inputs).flatten(0, 1), model.last(inputs)])
        results.append([logits, *gradients(model, logits)])
    torch.testing.assert_close(*results)


def test_open_gates_begin_as_none() -> None:
    for variant in ("timestep", "control"):
        config = LoopedTransformerConfig(d_model=8, num_heads=2, num_loops=1, variant=variant, gates="open")
        model = LoopedTransformer(config, vocab_size=6, num_classes=4, generator=torch.Generator().manual_seed(0))
        read = model.read_in(draw())
        torch.testing.assert_close(model.states(read), model.layers[0].by_definition(read))


@pytest.mark.parametrize("loops", ["fixed", "length", "converged"])
def test_no_long_strings_are_answered_in_training_where_they_take_as_many_loops(loops: str) -> None:
    assert takes_probes(make_spec("parity", "looped-transformer", {"model": {"loops": loops}})) == (loops == "fixed")


def test_new_settings_leave_the_ids_of_earlier_runs_alone() -> None:
    new = {"loops", "tolerance", "max_loops", "time", "gates"}
    assert not new & LoopedTransformerConfig().model_dump().keys()
    changed = LoopedTransformerConfig(loops="length", tolerance=0.1, max_loops=9, time="fraction", gates="open")
    assert new <= changed.model_dump().keys()
