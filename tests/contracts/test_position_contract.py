"""What every registered position encoding promises, in every model that has the setting `positions`."""

from typing import Any

import pytest
import torch
from position_forms import check_equal, check_fast_forms, draw_encoding, queries_keys_values, top

from lengthwise.conventions import PAD
from lengthwise.layers.positions.base import POSITIONS, PositionEncoding
from lengthwise.models import MODELS, SequenceModel, make_model
from lengthwise.models.base import outline
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.tasks import make_task

TRANSFORMERS = [name for name in MODELS if "positions" in MODELS[name].Config.model_fields]
LENGTHS = (1, 2, 63)
WINDOW = 5
"""Positions that a layer sees, with an encoding that has a window."""


def that_have(setting: str) -> list[str]:
    return [name for name in TRANSFORMERS if setting in MODELS[name].Config.model_fields]


@pytest.fixture(params=TRANSFORMERS)
def name(request) -> str:
    return request.param


@pytest.fixture(params=list(POSITIONS))
def positions(request) -> str:
    return request.param


NUM_LOOPS = 3
"""Loops of models that have this setting."""


def has_window(positions: str) -> bool:
    return POSITIONS[positions].window is not PositionEncoding.window


def settings_of(name: str, positions: str) -> dict[str, Any]:
    """Return settings of a small model, with the sizes that the encoding uses."""
    sizes = {"learned_positions": max(LENGTHS), "num_loops": NUM_LOOPS}
    if has_window(positions):
        sizes["position_range"] = WINDOW
    settings = {"positions": positions, "d_model": 16, "num_heads": 4}
    return settings | {key: size for key, size in sizes.items() if MODELS[name].Config.uses(key, settings)}


def make(name: str, positions: str, **settings: Any) -> SequenceModel:
    """A small model in float64, all of whose parameters are drawn: gates of loops are open."""
    config = MODELS[name].Config(**settings_of(name, positions) | settings)
    model = MODELS[name](config, vocab_size=3, num_classes=5, generator=torch.Generator().manual_seed(0)).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def draw(length: int) -> torch.Tensor:
    return torch.randint(3, (4, length), generator=torch.Generator().manual_seed(0))


def gradients(model: SequenceModel, loss: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(loss, list(model.parameters()), retain_graph=True, materialize_grads=True)


def test_what_comes_later_changes_nothing(name: str, positions: str) -> None:
    """Neither other symbols, nor pads, nor the end of the string."""
    model, inputs = make(name, positions), draw(20)
    changed = torch.cat([inputs[:, :9], (inputs[:, 9:] + 1) % 3], 1)
    padded = torch.cat([inputs[:, :9], torch.full((4, 5), PAD)], 1)
    with torch.no_grad():
        expected = model(inputs)[:, :9]
        for other in (changed, padded, inputs[:, :9]):
            torch.testing.assert_close(model(other)[:, :9], expected)


@pytest.mark.parametrize("length", LENGTHS)
def test_one_position_of_each_row_is_what_forward_has_there(name: str, positions: str, length: int) -> None:
    """Values and all gradients."""
    model, inputs = make(name, positions), draw(length)
    everywhere = model(inputs)
    indices = torch.tensor([0, length - 1, length // 2, length // 3])
    for expected, actual in (
        (everywhere[torch.arange(4), indices], model.logits_at(inputs, indices)),
        (everywhere[:, -1], model.last(inputs)),
    ):
        torch.testing.assert_close(actual, expected)
        torch.testing.assert_close(
            gradients(model, actual.square().sum()), gradients(model, expected.square().sum()), atol=1e-10, rtol=1e-7
        )


@pytest.mark.parametrize("length", [1, 2, 7, 63])
def test_fast_forms_are_the_definition(positions: str, length: int) -> None:
    """Attention in all its forms, with the gradients of queries, keys, values and parameters."""
    encoding = draw_encoding(positions, WINDOW if has_window(positions) else 63)
    check_fast_forms(encoding, length)
    query, key, _ = inputs = queries_keys_values(length)
    attention = top(encoding, length)
    below = torch.ones(length, length, dtype=torch.bool).tril() & (attention.scores(query, key)[0, 0] > -torch.inf)
    pairs = [scores[:, :, below] for scores in (attention.scores_of_pairs(query, key), attention.scores(query, key))]
    check_equal(*pairs, encoding, inputs)


def test_layers_are_their_definition(name: str, positions: str) -> None:
    """The stack by hand, layers as their equations stand: each has its own attention, and all loops the same one."""
    model, inputs = make(name, positions), draw(9)
    read = state = model.read_in(inputs)
    layers, attention = list(model.layers), list(model.read_in.positions.attention(read))
    scales: list[Any] = [None] * len(layers)
    if "num_loops" in type(model.config).model_fields:
        scales = list(model.scales(model.config.num_loops))
        layers, attention = layers * len(scales), attention * len(scales)
    for layer, of_loop, of_layer in zip(layers, scales, attention, strict=True):
        state = layer.by_definition(state, of_loop, of_layer)
    torch.testing.assert_close(model(inputs), model.readout(state))


@pytest.mark.parametrize("name", that_have("activations"))
def test_recomputed_activations_give_the_same_gradients(name: str, positions: str) -> None:
    results = []
    for activations in ("kept", "recomputed"):
        model = make(name, positions, activations=activations)
        logits = torch.cat([model(draw(9)).flatten(0, 1), model.last(draw(9))])
        results.append([logits, *gradients(model, logits.square().sum())])
    for kept, recomputed in zip(*results, strict=True):
        torch.testing.assert_close(recomputed, kept)


def test_order_matters(name: str, positions: str) -> None:
    """Two strings of the same symbols, in other orders before the same last one."""
    model = make(name, positions)
    with torch.no_grad():
        one, other = model.last(torch.tensor([[0, 1, 2, 2, 1]])), model.last(torch.tensor([[2, 1, 2, 0, 1]]))
    assert float((one - other).abs().max()) > 1e-6


def test_an_answer_depends_on_the_receptive_field_and_on_all_of_it(name: str, positions: str) -> None:
    """Each layer and each loop sees one window further back; without a window the first symbol counts also."""
    model, inputs = make(name, positions), draw(40)
    field = model.receptive_field
    config = model.config.model_dump()
    depth = config.get("num_layers", 1) * config.get("num_loops", 1)
    assert field == (depth * (WINDOW - 1) + 1 if has_window(positions) else None)
    with torch.no_grad():
        expected = model.last(inputs)
        changed = inputs.clone()
        changed[:, 0 if field is None else 40 - field] = PAD
        assert float((model.last(changed) - expected).abs().max()) > 1e-9
        if field is not None:
            changed = torch.cat([(inputs[:, :-field] + 1) % 3, inputs[:, -field:]], 1)
            for other in (changed, inputs[:, -field:]):
                torch.testing.assert_close(model.last(other), expected)


def test_parameters_come_from_the_generator_alone_and_are_drawn_again(name: str, positions: str) -> None:
    task = make_task("parity")
    model, other = (make_model(name, task, seed=seed, **settings_of(name, positions)) for seed in (0, 1))
    fresh = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    assert any(not torch.equal(fresh[key], tensor) for key, tensor in other.state_dict().items())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    again = make_model(name, task, **settings_of(name, positions))
    generator = torch.Generator().manual_seed(5)
    model.reset_parameters(generator)
    generator.manual_seed(5)
    again.reset_parameters(generator)
    assert all(torch.equal(again.state_dict()[key], tensor) for key, tensor in model.state_dict().items())


@pytest.mark.parametrize("name", that_have("initialization"))
@pytest.mark.parametrize("initialization", ["torch", "gpt2"])
def test_encodings_start_as_their_sources_say_whatever_the_rest(name: str, positions: str, initialization: str) -> None:
    config = MODELS[name].Config(**settings_of(name, positions), initialization=initialization)
    model = MODELS[name](config, vocab_size=3, num_classes=5, generator=torch.Generator().manual_seed(0))
    alone = POSITIONS[positions](model.read_in.positions.sizes)
    generator = torch.Generator().manual_seed(0)
    torch.nn.init.normal_(torch.empty(3, 16), generator=generator)  # the embeddings are drawn before
    alone.reset_parameters(generator)
    for key, tensor in alone.state_dict().items():
        assert torch.equal(model.read_in.positions.state_dict()[key], tensor), key


def test_every_parameter_gets_a_gradient(name: str, positions: str) -> None:
    model = make(name, positions)
    model(draw(9)).logsumexp(-1).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    of_positions = list(model.read_in.positions.parameters())
    assert all(bool(parameter.grad.any()) for parameter in of_positions)


def test_specifications_come_back_with_their_ids(name: str, positions: str) -> None:
    spec = make_spec("parity", name, {"model": settings_of(name, positions)})
    back = spec_from_json(spec.to_json())
    assert (back.id, back.model_config) == (spec.id, spec.model_config)
    assert back.model_config.positions == positions
    assert outline(name, back.model_config, spec.task).read_in.positions.name == positions
