"""Baum-Welch steps, against expected counts by enumeration and against what they have to learn."""

from itertools import pairwise, product
from pathlib import Path

import pytest
import torch

from lengthwise.conventions import IGNORE
from lengthwise.models import make_model
from lengthwise.models.base import SequenceModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.tasks.base import Batch, SymbolTask
from lengthwise.training.baum_welch import BaumWelch
from lengthwise.training.checkpoint import load_checkpoint, save_checkpoint
from lengthwise.training.loop import TrainingState, train, training_steps
from lengthwise.training.losses import likelihood_loss
from lengthwise.training.recipe import PRIOR, Recipe


def hidden_markov_model(task: SymbolTask, num_states: int, **settings: object) -> BlockLinearRNN:
    machine = {"d_model": num_states, "block_dim": num_states, "hidden": 0, "read": "mixture"}
    model = make_model("block-linear-rnn", task, **(machine | settings))
    assert isinstance(model, BlockLinearRNN)
    return model


def machine_recipe(task: str, **settings: object) -> Recipe:
    return make_spec(task, "block-linear-rnn", {"train": settings}, preset="likelihood").recipe


def test_a_step_sets_tables_to_the_normalized_counts_over_all_paths() -> None:
    task = make_task("parity")
    model = hidden_markov_model(task, 2).double()
    optimizer = BaumWelch(model.distributions, relaxation=1.0, floor=1e-12, prior=PRIOR)
    transitions, answers, first = (d.logits.detach().view(d.shape).exp() for d in model.distributions)
    inputs, targets = torch.tensor([[1, 0, 1]]), torch.tensor([[1, 1, 0]])
    tables = (transitions, answers, first)
    counts = [torch.zeros_like(table) for table in tables]
    for path in product(range(2), repeat=4):
        probability = float(first[0, path[0]])
        for before, after, symbol, answer in zip(path, path[1:], inputs[0], targets[0], strict=False):
            probability *= float(transitions[symbol, after, before] * answers[after, answer])
        counts[2][0, path[0]] += probability
        for before, after, symbol, answer in zip(path, path[1:], inputs[0], targets[0], strict=False):
            counts[0][symbol, after, before] += probability
            counts[1][after, answer] += probability
    likelihood_loss(model, Batch(inputs, targets), "prefix").backward()
    optimizer.step()
    total = counts[2].sum()
    for distribution, table, count in zip(model.distributions, tables, counts, strict=True):
        learned = distribution.logits.detach().view(distribution.shape).exp()
        # The loss is a mean over three answers, and so are the counts.
        expected = count / (3 * total) + PRIOR * table
        torch.testing.assert_close(learned, expected / expected.sum(distribution.dim, keepdim=True), rtol=0, atol=2e-5)


def test_the_likelihood_of_the_same_strings_never_falls() -> None:
    task = make_task("tomita", index=3)
    model = hidden_markov_model(task, 8, alignment=2.0).double()
    optimizer = BaumWelch(model.distributions, relaxation=1.0, floor=1e-9, prior=PRIOR)
    batch = task.sample(32, 12, torch.Generator().manual_seed(1))
    losses = []
    for _ in range(25):
        optimizer.zero_grad()
        loss = likelihood_loss(model, batch, "prefix")
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    # The floor and the prior may cost 1e-6 at most.
    assert all(after <= before + 1e-6 for before, after in pairwise(losses))
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("group", ["S3", "A4"])
def test_the_table_of_a_group_is_learned_for_strings_of_any_length(group: str) -> None:
    task = make_task("word-problem", group=group)
    assert isinstance(task, SymbolTask)
    model = hidden_markov_model(task, 16, alignment=6.0)
    train(model, task, machine_recipe("word-problem", steps=60, batch_size=32))
    model.set_progress(1.0)
    # The machine has at most 16 x 16 pairs of its own state and the right one, so 300 symbols show every mistake.
    batch = task.sample(64, 300, torch.Generator().manual_seed(5))
    assert torch.equal(model(batch.inputs).argmax(-1), batch.targets)


def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path: Path) -> None:
    task, recipe = make_task("parity"), machine_recipe("parity", steps=8, batch_size=4, min_length=1, max_length=9)

    def steps(model: SequenceModel, first: int) -> tuple[TrainingState, list[float]]:
        state = TrainingState(model, recipe, task)
        losses = []
        for record in training_steps(state, task, recipe, seed=3):
            losses.append(record.loss)
            if record.step == first:
                break
        return state, losses

    whole, losses = steps(hidden_markov_model(task, 4), 8)
    begun, early = steps(hidden_markov_model(task, 4), 5)
    save_checkpoint(begun, tmp_path / "checkpoint", "spec")
    resumed = TrainingState(hidden_markov_model(task, 4), recipe, task)
    load_checkpoint(resumed, tmp_path / "checkpoint", "spec")
    late = [record.loss for record in training_steps(resumed, task, recipe, seed=3)]
    assert early + late == losses
    for expected, actual in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(expected, actual)


def test_alignment_makes_states_copies_of_answers() -> None:
    task = make_task("word-problem", group="S3")
    model = hidden_markov_model(task, 12, alignment=30.0)
    assert model.readout.weight.argmax(1).tolist() == [0, 1, 2, 3, 4, 5] * 2


def test_only_hidden_markov_models_can_be_counted() -> None:
    task, recipe = make_task("parity"), machine_recipe("parity")
    with pytest.raises(
        ValueError, match=r"train.optimizer.name: expected 'adamw' or 'adam' for lstm, which has no tables"
    ):
        TrainingState(make_model("lstm", task), recipe, task)
    with pytest.raises(ValueError, match=r"train.optimizer.name: .* set model.read to 'mixture'"):
        TrainingState(make_model("block-linear-rnn", task), recipe, task)


def test_last_answers_count_all_paths_to_them() -> None:
    """The likelihood of the last answers alone, against the sum over all paths."""
    task = make_task("parity")
    model = hidden_markov_model(task, 3).double()
    BaumWelch(model.distributions, relaxation=1.0, floor=1e-12, prior=PRIOR)
    transitions, answers, first = (d.logits.detach().view(d.shape).exp() for d in model.distributions)
    inputs, targets = torch.tensor([[1, 0, 1], [0, 1, 0]]), torch.tensor([[1, 1, 0], [0, 1, IGNORE]])
    expected = 0.0
    for row, length in zip(range(2), (3, 2), strict=True):
        state = first[0]
        for symbol in inputs[row, :length].tolist():
            state = transitions[symbol] @ state
        expected -= float((state @ answers)[targets[row, length - 1]].log()) / 2
    loss = likelihood_loss(model, Batch(inputs, targets), "last")
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_a_distribution_that_a_batch_does_not_need_stays_as_it_is() -> None:
    task = make_task("parity")
    model = hidden_markov_model(task, 4).double()
    optimizer = BaumWelch(model.distributions, relaxation=1.0, floor=1e-12, prior=PRIOR)
    before = model.distributions[0].logits.detach().clone().view(model.distributions[0].shape)
    inputs = torch.zeros(8, 9, dtype=torch.int64)
    likelihood_loss(model, Batch(inputs, inputs), "prefix").backward()
    optimizer.step()
    after = model.distributions[0].logits.detach().view(model.distributions[0].shape)
    torch.testing.assert_close(after[1], before[1], rtol=0, atol=1e-9)
    assert (after[0] - before[0]).abs().max() > 0.1


@pytest.mark.parametrize(("prior", "weight"), [(0.01, 0.01 * 0.08), (0.5, 0.5)])
def test_the_prior_of_few_distributions_is_smaller(prior: float, weight: float) -> None:
    """The transitions of 4 states and 2 symbols are 8 distributions."""
    model = hidden_markov_model(make_task("parity"), 4).double()
    optimizer = BaumWelch(model.distributions, relaxation=1.0, floor=1e-12, prior=prior, prior_by_size=True)
    logits, shape, dim = model.distributions[0]
    before = logits.detach().clone().exp()
    counts = torch.rand(logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) / 100
    logits.grad = -counts
    optimizer.step()
    weights = (counts + weight * before).view(shape)
    torch.testing.assert_close(
        logits.detach().exp().view(shape), weights / weights.sum(dim, keepdim=True), rtol=1e-9, atol=1e-9
    )
