"""The block-diagonal linear RNN against its equation, and what its columns promise."""

import itertools
import math

import pytest
import torch

from lengthwise.certification.certify import certify
from lengthwise.models import block_linear_rnn, make_model
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.tasks import make_task
from lengthwise.training.loop import train

COLUMNS = ["stochastic", "reflected", "clamped", "rescaled", "unit"]
LITERAL = {"columns": "clamped", "input_map": "linear", "first_state": "zero"}
"""Eq. (5) and (6) as the paper has them."""


def make(**config) -> BlockLinearRNN:
    model = make_model("block-linear-rnn", make_task("sum"), **({"d_model": 12, "block_dim": 4, "hidden": 16} | config))
    assert isinstance(model, BlockLinearRNN)
    return model.double()


def states_by_definition(model: BlockLinearRNN, inputs: torch.Tensor) -> torch.Tensor:
    """Eq. (1), symbol by symbol and layer by layer, with A_t and v_t made again for every position."""
    latest = [layer.initial_state(len(inputs)) for layer in model.layers]
    states = []
    for token in inputs.unbind(1):
        stream = model.embedding(token)
        for number, (norm, layer) in enumerate(zip(model.norms, model.layers, strict=True)):
            features = norm(stream)
            moved = torch.einsum("bnij,bnj->bni", layer.transitions(features), latest[number])
            latest[number] = moved + layer.inputs(features)
            stream = stream + latest[number].flatten(1)
        states.append(torch.cat([state.flatten(1) for state in latest], 1))
    return torch.stack(states, 1)


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("config", [*({"columns": name} for name in COLUMNS), LITERAL], ids=[*COLUMNS, "literal"])
def test_states_are_those_of_the_equation(config: dict[str, str], num_layers: int) -> None:
    model = make(**config, num_layers=num_layers)
    inputs = torch.randint(5, (3, 21), generator=torch.Generator().manual_seed(0))
    states, expected = torch.cat(list(model.states(inputs)), 1), states_by_definition(model, inputs)
    torch.testing.assert_close(states, expected)
    gradients = [
        torch.autograd.grad(states.square().sum(), list(model.layers.parameters())) for states in (states, expected)
    ]
    torch.testing.assert_close(*gradients)


def literal_states(model: BlockLinearRNN, inputs: torch.Tensor) -> torch.Tensor:
    """x_k = A_k x_{k-1} + B u_k with x_0 = 0 and columns v / max(1, |v|_p), from the parameters alone; one layer."""
    config, (layer,) = model.config, model.layers
    assert [name for name, _ in layer.named_parameters()] == [
        *(f"transition_map.{part}" for part in ("0.weight", "0.bias", "2.weight", "2.bias")),
        "input_map.0.weight",
    ]
    state, states = torch.zeros(len(inputs), config.d_model, dtype=torch.float64), []
    for token in inputs.unbind(1):
        u = model.norms[0](model.embedding(token))
        numbers = layer.transition_map(u).unflatten(1, (-1, config.block_dim, config.block_dim))
        norms = numbers.abs().pow(config.p).sum(2, keepdim=True).pow(1 / config.p)
        blocks = numbers / norms.clamp(min=1)
        whole = torch.stack([torch.block_diag(*row) for row in blocks])
        state = (whole @ state[..., None])[..., 0] + u @ layer.input_map[0].weight.T
        states.append(state)
    return torch.stack(states, 1)


def test_the_layer_of_equations_5_and_6_taken_literally() -> None:
    model = make(**LITERAL)
    inputs = torch.randint(5, (3, 21), generator=torch.Generator().manual_seed(0))
    states, expected = torch.cat(list(model.states(inputs)), 1), literal_states(model, inputs)
    torch.testing.assert_close(states, expected)
    torch.testing.assert_close(model.last_state(inputs), expected[:, -1])
    parameters = [model.embedding.weight, *model.layers.parameters()]
    gradients = [torch.autograd.grad(states.square().sum(), parameters) for states in (states, expected)]
    torch.testing.assert_close(*gradients)


def test_every_parameter_of_the_literal_layer_is_drawn_and_has_a_gradient() -> None:
    model = make(**LITERAL, num_layers=2)
    assert not any("first_state" in name for name in model.state_dict())
    assert not model.initial_state(2).any()
    model(torch.tensor([[0, 1, 2, 3]])).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_settings_of_the_literal_layer_leave_other_ids_alone() -> None:
    default = make_spec("sum", "block-linear-rnn", {"model": {"columns": "clamped"}}, preset="fan2024")
    assert not {"input_map", "first_state"} & default.to_json()["model"].keys()
    literal = make_spec("sum", "block-linear-rnn", {"model": LITERAL}, preset="fan2024")
    assert spec_from_json(literal.to_json()) == literal
    ids = {default.id, literal.id}
    ids |= {
        make_spec("sum", "block-linear-rnn", {"model": LITERAL | {name: value}}, preset="fan2024").id
        for name, value in (("input_map", "two-layer"), ("first_state", "learned"))
    }
    assert len(ids) == 4


@pytest.mark.parametrize("columns", ["stochastic", "reflected"])
def test_hardened_columns_reject_an_input_term_and_a_first_state_of_zero(columns: str) -> None:
    for name, value in (("input_map", "linear"), ("first_state", "zero")):
        with pytest.raises(ValueError, match=f"^model.{name}: expected its default with columns 'stochastic' or"):
            make(columns=columns, **{name: value})


def test_certificates_of_the_literal_layer_say_what_is_wrong() -> None:
    model = make(**LITERAL).float()
    certificate = certify(model, make_task("sum"))
    assert certificate.level == "refuted"


@pytest.mark.parametrize("length", [99, 100, 101])
def test_parts_of_positions_leave_no_seam(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_linear_rnn, "MAX_ELEMENTS_PER_CHUNK", 100 * 2 * 12 * 4 + 5)
    model = make(num_layers=2)
    inputs = torch.randint(5, (2, length), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = states_by_definition(model, inputs)
        torch.testing.assert_close(torch.cat(list(model.states(inputs)), 1), expected)
        torch.testing.assert_close(model.last_state(inputs), expected[:, -1])


def test_answers_are_read_from_all_layers_or_from_the_last() -> None:
    inputs = torch.randint(5, (3, 8), generator=torch.Generator().manual_seed(0))
    for read in ("all", "last"):
        model = make(num_layers=2, read=read, columns="clamped")
        states = states_by_definition(model, inputs).requires_grad_()
        (gradient,) = torch.autograd.grad(model.readout(states).square().sum(), states)
        assert bool((gradient[..., :12] != 0).any()) == (read == "all")
        assert (gradient[..., 12:] != 0).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_mixture_answers_as_a_state_drawn_at_random_does(dtype: torch.dtype) -> None:
    """All paths of states, one by one: their probabilities, times those of the answers in their last states."""
    model = make(d_model=3, block_dim=3, read="mixture").to(dtype)
    (tokens,) = torch.tensor([[2, 0, 4]])
    columns = model._tables_of(model.embedding.weight).transitions
    first, answers = model.layers[0].initial_state(1)[0, 0], model.readout.weight.softmax(-1)
    expected = torch.zeros(5, dtype=dtype)
    for path in itertools.product(range(3), repeat=4):
        steps = zip(tokens, path[:-1], path[1:], strict=True)
        probability = math.prod((columns[u, 0, after, before] for u, before, after in steps), start=first[path[0]])
        expected = expected + probability * answers[path[-1]]
    log_probabilities = model.last(tokens[None])[0]
    torch.testing.assert_close(log_probabilities.exp(), expected)
    parameters = [*model.layers.parameters(), model.readout.weight]
    gradients = [
        torch.autograd.grad(p[1].log(), parameters, allow_unused=True) for p in (log_probabilities.exp(), expected)
    ]
    torch.testing.assert_close(*gradients)


def test_a_mixture_of_answers_that_none_gives_is_finite() -> None:
    model = make(d_model=4, block_dim=4, read="mixture")
    model.set_progress(1.0)
    with torch.no_grad():
        model.readout.weight.copy_(1_000 * torch.eye(4, 5))
    logits = model(torch.tensor([[0, 1, 2]]))
    assert logits.isfinite().all()
    (gradient,) = torch.autograd.grad(logits.sum(), model.readout.weight)
    assert gradient.isfinite().all()


def test_a_mixture_is_one_of_states() -> None:
    for config in ({"block_dim": 6}, {"num_layers": 2}, {"columns": "clamped"}):
        with pytest.raises(ValueError, match="read: expected 'all' or 'last' unless the net is one layer of one block"):
            make(**({"d_model": 12, "block_dim": 12, "read": "mixture"} | config))


def test_stochastic_states_are_distributions_and_end_as_one_hot_vectors() -> None:
    model = make(num_layers=1)
    inputs = torch.randint(5, (3, 200), generator=torch.Generator().manual_seed(0))
    for share, minimum in ((0.0, 0.0), (1.0, 0.9)):
        model.set_progress(share)
        with torch.no_grad():
            blocks = torch.cat(list(model.states(inputs)), 1).unflatten(2, (3, 4))
            columns = model.layers[0].transitions(model.embedding.weight)
        torch.testing.assert_close(blocks.sum(-1), torch.ones_like(blocks[..., 0]))
        assert columns.amax(-2).mean() > minimum


def test_the_temperature_follows_the_share_that_is_done() -> None:
    model = make()
    for share, temperature in ((0.0, 1.0), (0.4, 1.0), (0.65, 0.001**0.5), (0.9, 0.0), (1.0, 0.0)):
        model.set_progress(share)
        assert float(model.layers[0].temperature) == pytest.approx(temperature)


def test_a_block_dimension_that_divides_nothing_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"block_dim: expected a divisor of d_model=64, got 7; choose from \[1, 2, 4, 8"
    ):
        make_model("block-linear-rnn", make_task("sum"), block_dim=7)
    with pytest.raises(ValueError, match="block_dim: expected at least 2 with columns 'rescaled'"):
        make_model("block-linear-rnn", make_task("sum"), block_dim=1, columns="rescaled")
    with pytest.raises(ValueError, match=r"model\.p: expected a number greater than or equal to 1, got 0\.5"):
        make_model("block-linear-rnn", make_task("sum"), p=0.5)


def test_without_hidden_units_a_symbol_is_the_logits_of_its_matrix() -> None:
    model = make(d_model=6, block_dim=3, hidden=0)
    logits = model.embedding.weight.unflatten(1, (2, 3, 3))
    torch.testing.assert_close(model._tables_of(model.embedding.weight).transitions, logits.softmax(-2))
    assert {name.split(".")[0] for name, _ in model.named_parameters()} == {"embedding", "layers", "readout"}
    for config in ({"columns": "clamped"}, {"num_layers": 2}):
        with pytest.raises(ValueError, match="hidden: expected at least 1 unit with columns "):
            make(hidden=0, **config)
    with pytest.raises(
        ValueError, match=r"input_map: expected 'linear' with columns 'unit' and hidden=0, which .*, got 'two-layer'"
    ):
        make(hidden=0, columns="unit")


@torch.no_grad()
def test_sd_ssm_is_its_equation() -> None:
    """x_t = A(u_t) x_{t-1} + B u_t with columns of A(u) divided by their p-norms."""
    task = make_task("word-problem", group="A5")
    settings = {"d_model": 8, "block_dim": 8, "columns": "unit", "hidden": 0, "input_map": "linear"}
    model = make_model("block-linear-rnn", task, **settings)
    num_symbols = len(task.symbols)
    assert sum(parameter.numel() for parameter in model.parameters()) == (
        num_symbols * (64 + 8) + 8 + 2 * 8 + 8 * 9 + len(task.classes) * 9
    )
    matrices, values = model.embedding.weight.split((64, 8), 1)
    norms = matrices.view(-1, 8, 8).abs().pow(1.2).sum(1, keepdim=True).pow(1 / 1.2)
    state, inputs = model.initial_state(2), torch.randint(num_symbols, (2, 9))
    for token in inputs.unbind(1):
        state = torch.einsum("bij,bj->bi", (matrices.view(-1, 8, 8) / norms)[token], state) + values[token]
    torch.testing.assert_close(model.last_state(inputs), state)


@torch.no_grad()
@pytest.mark.parametrize("first", ["zero", "learned"])
def test_sd_ssm_solves_a_word_problem_by_hand_set_weights(first: str) -> None:
    """From x_0 = c, states are c permuted; from 0, as published, c permuted less c, if B u adds P c - c."""
    task = make_task("word-problem", group="A5")
    settings = {"d_model": 8, "block_dim": 8, "columns": "unit", "hidden": 0, "input_map": "linear"}
    model = make_model("block-linear-rnn", task, **settings, first_state=first)
    points, c = task.action.degree, torch.arange(8.0)
    model.embedding.weight.zero_()
    for symbol, permutation in enumerate(torch.tensor(task.action.generators)):
        moved = torch.eye(8)
        moved[:points, :points] = torch.eye(points)[:, permutation]
        model.embedding.weight[symbol, :64] = moved.flatten()
        if first == "zero":
            model.embedding.weight[symbol, 64:] = moved @ c - c
    if first == "learned":
        model.layers[0].first_state.copy_(c)
    batch = task.sample(2, 10_000, torch.Generator().manual_seed(0))
    orders = torch.arange(float(points))[torch.tensor(task.action.elements).argsort(1)]
    states = torch.cat(list(model.states(batch.inputs)), 1)[..., :points]
    start = c[:points] if first == "zero" else torch.zeros(points)
    assert torch.equal(states + start, orders[task.solve(batch.inputs)])


@pytest.mark.slow
@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("task", "preset"), [("sum", "recurrent"), ("equal-ends", "recurrent"), ("modular-arithmetic", "machine")]
)
def test_presets_are_right_far_beyond_the_training_length(task: str, preset: str) -> None:
    """One net of two at least: which one may depend on how the processor rounds."""
    for seed in range(2):
        spec = make_spec(task, "block-linear-rnn", {}, preset=preset, seed=seed)
        model = spec.make_model()
        train(model, spec.task, spec.recipe, seed=seed)
        batch = spec.task.sample(200, 4_999, torch.Generator().manual_seed(1))
        with torch.no_grad():
            if bool((model.last(batch.inputs).argmax(1) == batch.targets[:, -1]).all()):
                return
    pytest.fail("neither net is right")


@pytest.mark.parametrize("config", [{"columns": "clamped", "num_layers": 2}, {"hidden": 0}], ids=["layers", "logits"])
def test_transitions_are_made_of_the_symbols_of_the_input_alone(config: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers and gradients as with those of all symbols, where a vocabulary is large."""
    results = []
    inputs = torch.tensor([[4, 1, 1, 4, 3], [1, 1, 1, 3, 4]])
    for maximum in (5, 4):
        monkeypatch.setattr(block_linear_rnn, "MAX_TABLED_SYMBOLS", maximum)
        model = make(**config)
        tables, _ = model._tables(inputs)
        state = model.initial_state(2)
        stepped, _ = model.step(inputs[:, 0], state)
        answers = torch.cat([model(inputs).flatten(0, 1), model.last(inputs), stepped])
        gradients = torch.autograd.grad(answers.square().sum(), list(model.parameters()))
        results.append((len(tables.transitions), answers, gradients))
    (of_all, answers, gradients), (of_input, same_answers, same_gradients) = results
    assert (of_all, of_input) == (5, 3)
    torch.testing.assert_close(same_answers, answers)
    torch.testing.assert_close(same_gradients, gradients)
