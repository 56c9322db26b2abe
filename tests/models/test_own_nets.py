"""Nets of somebody else's: tied weights, parts in evaluation mode, draws of their own, shapes that do not fit."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from lengthwise import (
    MODELS,
    attack,
    certify,
    execute,
    extract,
    load_run,
    make_model,
    make_spec,
    make_task,
    train,
    wrap,
)
from lengthwise.evaluation.error_curve import error_curve
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models.base import RecurrentModel
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.hub import load_hub, save_hub

PARITY = make_task("parity")
SHORT = {"steps": 6, "batch_size": 8, "min_length": 4, "max_length": 6}
RECIPE = make_spec("parity", "gru", {"train": SHORT}).recipe
PLAN = EvaluationPlan(dense=(7, 9), dense_strings=64, long=(), structured=())


class Tied(RecurrentModel):
    """Embedding and read-out are one matrix, as in language models."""

    def __init__(self, config, *, vocab_size: int, num_classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, 4)
        self.cell = nn.RNNCell(4, 4)
        self.readout = nn.Linear(4, num_classes, bias=False)
        self.readout.weight = self.embedding.weight
        self.reset_parameters(generator)

    def reset_parameters(self, generator: torch.Generator) -> None:
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=generator)

    def initial_state(self, batch_size: int) -> Tensor:
        return torch.zeros(batch_size, 4)

    def step(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = self.cell(self.embedding(token), state)
        return self.readout(state), state


def test_tied_weights_are_stored_as_they_were_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS._members, "tied", Tied)
    Tied.name = "tied"
    spec = make_spec("parity", "tied", {"train": {**SHORT, "steps": 30, "ema_decay": 0.9}})
    result = execute(spec, tmp_path, PLAN)
    run = load_run(tmp_path / spec.id)
    assert run.model.readout.weight is run.model.embedding.weight
    stored = load_file(RunFolder(tmp_path / spec.id).checkpoint)
    assert not torch.equal(stored["average.embedding.weight"], stored["weights.embedding.weight"])
    assert torch.equal(run.model.embedding.weight, stored["average.embedding.weight"])
    assert result.dense == PLAN.measure_dense(run.model, PARITY)


def modes(*parts: nn.Module) -> list[bool]:
    return [module.training for part in parts for module in part.modules()]


def test_what_is_in_evaluation_mode_stays_there() -> None:
    embedding, core, head = (
        nn.Embedding(2, 3),
        nn.GRU(3, 4, batch_first=True),
        nn.Sequential(nn.Dropout(), nn.Linear(4, 2)),
    )
    head.eval()
    core.train()
    before = modes(embedding, core, head)
    net = wrap(embedding, core, head)
    assert modes(embedding, core, head) == before
    length_curve(net, PARITY, [3], num_strings=4)
    assert modes(embedding, core, head) == before


def with_dropout() -> RecurrentModel:
    generator = torch.Generator().manual_seed(1)
    net = wrap(nn.Embedding(2, 3), nn.GRU(3, 4, batch_first=True), nn.Sequential(nn.Dropout(), nn.Linear(4, 2)))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.normal_(generator=generator)
    return net


def test_dropout_draws_the_same_for_the_same_seed_and_leaves_the_draws_of_others_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    losses = []
    for outside, seed in ((5, 0), (6, 0), (5, 1)):
        net = with_dropout()
        torch.manual_seed(outside)
        losses.append([record.loss for record in train(net, PARITY, RECIPE, seed=seed)])
        if outside == 5:
            assert torch.equal(torch.rand(3), expected)
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.unchecked
def test_a_seed_is_a_whole_number_of_any_type() -> None:
    weights = [make_model("rnn", PARITY, seed=seed).state_dict() for seed in (1, np.int64(1), True)]
    assert all(torch.equal(other[name], tensor) for other in weights[1:] for name, tensor in weights[0].items())
    assert make_spec("parity", "rnn", seed=np.int64(1)).id == make_spec("parity", "rnn", seed=1).id
    for seed in (0.5, "0", None, -1):
        with pytest.raises(ValueError, match=r"^seed: expected a whole number from 0 to 1,000,000,000,000,000, got "):
            make_spec("parity", "rnn", seed=seed)
        model = make_model("rnn", PARITY)
        calls = (
            partial(make_model, "rnn", PARITY),
            partial(certify, model, PARITY),
            partial(attack, model, PARITY),
            partial(extract, model, "ab", ("no", "yes")),
            partial(train, model, PARITY, RECIPE),
            partial(length_curve, model, PARITY, [3]),
        )
        for call in calls:
            with pytest.raises(ValueError, match=r"^seed: expected a whole number of at least 0, got .*; give a "):
                call(seed=seed)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_net_for_another_number_of_answers_is_neither_measured_nor_trained(outputs: int) -> None:
    net = wrap(nn.Embedding(2, 3), nn.GRU(3, 4, batch_first=True), nn.Linear(4, outputs))
    for act in (lambda: length_curve(net, PARITY, [3]), lambda: train(net, PARITY, RECIPE)):
        with pytest.raises(
            ValueError, match=f"^model: expected a model for the 2 answers of the task, got one for {outputs}"
        ):
            act()


def test_a_net_of_fewer_symbols_is_neither_measured_nor_trained() -> None:
    task = make_task("cycle-navigation")
    net = wrap(nn.Embedding(2, 3), nn.GRU(3, 4, batch_first=True), nn.Linear(4, 5))
    for act in (lambda: length_curve(net, task, [3]), lambda: train(net, task, RECIPE)):
        with pytest.raises(
            ValueError, match=r"^model: expected a model that reads the 3 symbols of the task, got an error"
        ):
            act()


@pytest.mark.unchecked
def test_an_error_curve_is_of_a_task_that_answers_with_numbers() -> None:
    with pytest.raises(
        ValueError, match=r"^task: expected a task whose answers are numbers, got parity, whose answers are classes"
    ):
        error_curve(make_model("gru", PARITY), PARITY, 5)


def test_where_no_gradient_reaches_a_weight_nothing_is_trained() -> None:
    net = make_model("gru", PARITY)
    for context in (torch.no_grad, torch.inference_mode):
        with context(), pytest.raises(ValueError, match="within no_grad or inference_mode"):
            train(net, PARITY, RECIPE)
    with pytest.raises(ValueError, match="expected weights to train, got a gru without trainable weights"):
        train(net.requires_grad_(False), PARITY, RECIPE)
    with torch.inference_mode():
        inference = make_model("gru", PARITY)
    with pytest.raises(ValueError, match="expected weights to train, got a gru without trainable weights"):
        train(inference, PARITY, RECIPE)


def test_tied_weights_are_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS._members, "tied", Tied)
    Tied.name = "tied"
    model = make_model("tied", PARITY)
    save_hub(tmp_path, model, PARITY, ("run", "none"))
    loaded = load_hub(tmp_path).model
    assert torch.equal(loaded.readout.weight, model.readout.weight)


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("inputs", "got"),
    [
        ([[[0.0] * 20]], "got a list"),
        (torch.zeros(1, 0, 20), r"got \[1, 0, 20\]"),
        (torch.zeros(1, 3, 20).double(), "float64"),
    ],
)
def test_vectors_that_do_not_fit_are_named(inputs: object, got: str) -> None:
    model = make_model("transformer", make_task("decision-tree"), d_model=8, num_heads=2)
    with pytest.raises(ValueError, match=f"^inputs: expected .*{got}"):
        model(inputs)


@pytest.mark.unchecked
def test_what_is_no_specification_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^spec: expected a RunSpec, got 'parity'; make it with make_spec\(task, mod"):
        execute("parity", tmp_path)
    with pytest.raises(ValueError, match=r"^plan: expected an EvaluationPlan, got {'dense': \(41, 50\)}; give one$"):
        execute(make_spec("parity", "gru"), tmp_path, {"dense": (41, 50)})
    assert not list(tmp_path.iterdir())
