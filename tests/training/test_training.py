"""The loop, its recipe, and what it does to strings and states."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lengthwise.conventions import IGNORE, PAD
from lengthwise.models import MODELS, make_model
from lengthwise.models.capabilities import HasHiddenMatrices
from lengthwise.presets import PRESETS
from lengthwise.randomness import generator_for
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import Batch, make_task
from lengthwise.training import losses
from lengthwise.training.augmentation import (
    gaussian_noise,
    random_suffixes,
    with_identity_padding,
    with_leading_pads,
)
from lengthwise.training.checkpoint import load_checkpoint, save_checkpoint
from lengthwise.training.loop import (
    MIN_CLIP_NORM,
    Diverged,
    Growth,
    TrainingState,
    train,
    training_lengths,
    training_steps,
)
from lengthwise.training.losses import supervised_loss
from lengthwise.training.muon import MIN_NORM, Muon, orthogonalized
from lengthwise.training.recipe import Recipe
from lengthwise.training.requirements import check_memory, check_model
from lengthwise.validation import validated

SMALL = {"d_model": 16, "num_heads": 2}


def small_recipe(**changes) -> Recipe:
    return Recipe(**{"steps": 30, "batch_size": 16, "max_length": 12, "checkpoint_every": 10} | changes)


def small_state(task, recipe: Recipe) -> TrainingState:
    return TrainingState(make_model("regular-gpt", task, **SMALL), recipe)


def smallest_state(task, recipe: Recipe) -> TrainingState:
    return TrainingState(make_model("regular-gpt", task, d_model=2, num_heads=1), recipe)


@given(st.integers(1, 30), st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.5, 1.0, 3.0]))
def test_identity_padding_keeps_the_string_and_repeats_the_answer(
    length: int, seed: int, block: int, maximum: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    task = make_task("parity")
    batch = task.sample(5, length, generator)
    padded = with_identity_padding(batch, generator, max_per_symbol=maximum, block=block)
    num_pads = padded.inputs.shape[1] - length
    assert num_pads == 0 or num_pads % block == -length % block
    assert 0 <= num_pads - (-length % block if num_pads else 0) <= maximum * length
    for row in range(5):
        symbols = padded.inputs[row] != PAD
        assert torch.equal(padded.inputs[row][symbols], batch.inputs[row])
        assert torch.equal(padded.targets[row][symbols], batch.targets[row])
        answer = IGNORE
        for position in range(length + num_pads):
            answer = int(padded.targets[row, position]) if symbols[position] else answer
            is_supervised = symbols[position] or (position + 1) % block == 0
            assert int(padded.targets[row, position]) == (answer if is_supervised else IGNORE)


def test_padding_in_blocks_keeps_chunks_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.arange(1, 21).expand(200, 20)
    chunks = {tuple(chunk) for chunk in inputs[0].reshape(-1, 4).tolist()} | {(PAD,) * 4}
    for _ in range(20):
        padded = with_identity_padding(Batch(inputs, inputs), generator, block=4).inputs
        assert {tuple(chunk) for chunk in padded.reshape(-1, 4).tolist()} <= chunks
    ragged = with_identity_padding(Batch(inputs[:, 1:], inputs[:, 1:]), generator, block=4).inputs
    assert {tuple(chunk) for chunk in ragged.reshape(-1, 4).tolist()} == chunks - {(1, 2, 3, 4)} | {(PAD, 2, 3, 4)}


def test_identity_padding_draws_positions_again_for_every_string() -> None:
    generator = torch.Generator().manual_seed(0)
    batch = make_task("parity").sample(200, 20, generator)
    pads = next(p for p in (with_identity_padding(batch, generator).inputs == PAD for _ in range(99)) if p[0].sum() > 5)
    assert (pads.sum(1) == pads[0].sum()).all()
    assert pads.float().mean(0).std() < 0.1
    assert len({tuple(row) for row in pads.tolist()}) > 150


def test_leading_pads_stand_in_front_and_are_unsupervised() -> None:
    generator = torch.Generator().manual_seed(0)
    batch = make_task("parity").sample(3, 7, generator)
    numbers = []
    for _ in range(300):
        padded = with_leading_pads(batch, 64, generator)
        numbers.append(padded.inputs.shape[1] - 7)
        assert (padded.inputs[:, :-7] == PAD).all()
        assert (padded.targets[:, :-7] == IGNORE).all()
        assert torch.equal(padded.inputs[:, -7:], batch.inputs)
    assert min(numbers) == 1
    assert 32 < max(numbers) <= 64
    assert 0.4 < sum(number < 8 for number in numbers) / 300 < 0.6  # log-uniform: half lie below the root


def test_there_are_as_many_pads_as_the_recipe_says() -> None:
    generator = torch.Generator().manual_seed(0)
    batch = make_task("parity").sample(1, 10, generator)
    numbers = {with_identity_padding(batch, generator, max_per_symbol=3.0).inputs.shape[1] - 10 for _ in range(500)}
    assert numbers == set(range(31))


def test_suffixes_have_every_length() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.arange(12).reshape(2, 6)
    suffixes = [random_suffixes(Batch(inputs, inputs + 1), generator) for _ in range(100)]
    assert {suffix.inputs.shape[1] for suffix in suffixes} == set(range(1, 7))
    for suffix in suffixes:
        assert torch.equal(suffix.inputs, inputs[:, -suffix.inputs.shape[1] :])
        assert torch.equal(suffix.targets, suffix.inputs + 1)


@pytest.mark.unchecked
@pytest.mark.slow
def test_consistency_brings_the_states_of_one_string_together() -> None:
    task, generator = make_task("parity"), generator_for(0, "strings")
    batch = task.sample(200, 9, generator)
    padded = with_identity_padding(batch, generator, max_per_symbol=3.0).inputs
    differences = [0.0, 0.0]
    for seed in (0, 1):
        for position, consistency in enumerate((0.0, 1.0)):
            model = make_model("regular-gpt", task, seed=seed, **SMALL)
            train(model, task, small_recipe(steps=200, late_consistency=consistency), seed=seed)
            with torch.no_grad():
                states, with_pads = model.last_state(batch.inputs), model.last_state(padded)
            differences[position] += float((states - with_pads).square().mean())
    assert differences[1] < 0.5 * differences[0]


def test_states_of_suffixes_of_half_of_the_strings_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def recorded(batch: Batch, generator: torch.Generator, **settings) -> Batch:
        calls.append((tuple(batch.inputs.shape), settings))
        return with_identity_padding(batch, generator, **settings)

    monkeypatch.setattr(losses, "with_identity_padding", recorded)
    augmentation = {"padding": 0.0, "pads_per_symbol": 3.0}
    recipe = small_recipe(min_length=12, batch_size=9, late_consistency=1.0, augmentation=augmentation)
    list(training_steps(small_state(make_task("parity"), recipe), make_task("parity"), recipe, seed=0))
    assert len(calls) == 15
    assert {rows for (rows, _), _ in calls} == {5}
    assert len({length for (_, length), _ in calls}) > 5
    assert all(settings == {"max_per_symbol": 3.0, "block": 2} for _, settings in calls)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "train.augmentation: gru accepts no pads; set padding, leading_padding and late_consistency to 0, as in ",
        ),
        ({"late_consistency": 1.0}, "train.late_consistency: expected 0, because gru accepts no pads, got 1; set"),
        (
            {"late_consistency": 0.0, "augmentation": {"padding": 0, "leading_padding": 0}},
            "train.augmentation: gru accepts no noise",
        ),
    ],
)
def test_a_recipe_that_needs_a_missing_capability_is_rejected(changes: dict, sentence: str) -> None:
    unchanged = {"augmentation": PRESETS["plain"].train["augmentation"]} if changes.get("late_consistency") else {}
    with pytest.raises(ValueError, match=sentence):
        check_model(MODELS["gru"], validated(Recipe, unchanged | changes))


NO_HIDDEN_MATRICES = [name for name in MODELS if not issubclass(MODELS[name], HasHiddenMatrices)]


@pytest.mark.parametrize("name", NO_HIDDEN_MATRICES)
def test_muon_is_rejected_where_it_would_move_nothing(name: str) -> None:
    """A recipe names the optimizer that runs: AdamW never takes the place of Muon."""
    sentence = f"train.optimizer.name: expected 'adamw' or 'adam', because {name} names no hidden matrices .*got 'muon'"
    with pytest.raises(ValueError, match=sentence):
        make_spec("parity", name, {}, preset="plain")
    with pytest.raises(ValueError, match=sentence):
        TrainingState(make_model(name, make_task("parity")), validated(Recipe, PRESETS["plain"].train))
    assert make_spec("parity", name, {}).recipe.optimizer.name == "adamw"


@pytest.mark.unchecked
def test_consistency_is_part_of_the_loss_but_does_not_hold_growth_up(monkeypatch: pytest.MonkeyPatch) -> None:
    read = losses._loss_and_states

    def far_apart(*arguments) -> tuple[torch.Tensor, list[torch.Tensor]]:
        answers, states = read(*arguments)
        return answers, [0 * state + position * 2**0.5 for position, state in enumerate(states)]

    monkeypatch.setattr(losses, "_loss_and_states", far_apart)
    task = make_task("parity")
    recipe = small_recipe(steps=400, length_sampling="growing", max_length=3, late_consistency=3.0)
    state = small_state(task, recipe)
    state.step = 200
    for record in training_steps(state, task, recipe, seed=0):
        assert record.loss >= 6
        if state.growth.num_reached > 1:
            return
    pytest.fail("lengths did not grow")


def test_noise_has_the_given_deviation() -> None:
    noise = gaussian_noise(0.3, torch.Generator().manual_seed(0))
    drawn = noise(torch.zeros(100, 100))
    assert float(drawn.std()) == pytest.approx(0.3, rel=0.03)


def test_last_supervision_scores_the_last_question_only() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, **SMALL)
    inputs = torch.tensor([[0, 1, 1], [1, 1, 0]])
    targets = torch.tensor([[0, 1, IGNORE], [1, 0, IGNORE]])
    expected = torch.nn.functional.cross_entropy(model(inputs)[:, 1], targets[:, 1])
    torch.testing.assert_close(supervised_loss(model, Batch(inputs, targets), "last"), expected)


def test_prefix_supervision_scores_every_question() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, **SMALL)
    inputs = torch.tensor([[0, 1, 1], [1, 1, 0]])
    targets = torch.tensor([[0, IGNORE, 0], [1, 0, 0]])
    logits = model(inputs).log_softmax(-1)
    supervised = [(0, 0, 0), (0, 2, 0), (1, 0, 1), (1, 1, 0), (1, 2, 0)]
    expected = -torch.stack([logits[row, position, answer] for row, position, answer in supervised]).mean()
    torch.testing.assert_close(supervised_loss(model, Batch(inputs, targets), "prefix"), expected)


@pytest.mark.parametrize("supervision", ["last", "prefix"])
def test_where_nothing_is_supervised_the_loss_is_0(supervision: str) -> None:
    model, inputs = make_model("gru", make_task("parity"), d_model=4), torch.zeros(3, 5, dtype=torch.int64)
    loss = supervised_loss(model, Batch(inputs, torch.full_like(inputs, IGNORE)), supervision)
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(not parameter.grad.any() for parameter in model.parameters())


def test_rows_of_different_lengths_are_scored_at_the_last_supervised_position_of_each() -> None:
    """Pads at the end: the loss is that of the rows alone, in values and gradients."""
    task = make_task("parity")
    model = make_model("looped-transformer", task, num_loops=2, variant="code", **SMALL).double()
    rows = [torch.tensor([0, 1, 1]), torch.tensor([1]), torch.tensor([1, 1, 0, 1, 0])]
    inputs, targets = torch.full((3, 5), PAD), torch.full((3, 5), IGNORE)
    alone = []
    for position, row in enumerate(rows):
        inputs[position, : len(row)], targets[position, len(row) - 1] = row, position % 2
        alone.append(torch.nn.functional.cross_entropy(model.last(row[None]), torch.tensor([position % 2])))
    together = supervised_loss(model, Batch(inputs, targets), "last")
    losses = (together, torch.stack(alone).mean(), supervised_loss(model, Batch(inputs, targets), "prefix"))
    gradients = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for loss in losses]
    for loss, gradient in zip(losses[1:], gradients[1:], strict=True):
        torch.testing.assert_close(loss, losses[0])
        torch.testing.assert_close(gradient, gradients[0])


@pytest.mark.parametrize("supervision", ["last", "prefix"])
def test_numbers_of_a_batch_that_supervises_nothing_have_no_gradient(supervision: str) -> None:
    task = make_task("longest-common-subsequence")
    model, batch = make_model("grid-recurrence", task), task.sample(2, 8, torch.Generator().manual_seed(0))
    loss = supervised_loss(model, batch._replace(targets=torch.full_like(batch.targets, IGNORE)), supervision)
    assert float(loss.detach()) == 0.0
    loss.backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("supervision", ["last", "prefix"])
def test_numbers_are_scored_by_their_squared_error(supervision: str) -> None:
    task = make_task("decision-tree", depth=2, dims=3, max_points=6)
    model = make_model("looped-transformer", task, num_loops=2, variant="code", **SMALL)
    batch = task.sample(4, 5, torch.Generator().manual_seed(0))
    answers = model(batch.inputs)[..., 0]
    positions = [8] if supervision == "last" else [0, 2, 4, 6, 8]
    expected = (answers[:, positions] - batch.targets[:, positions]).square().mean()
    torch.testing.assert_close(supervised_loss(model, batch, supervision), expected)


def test_training_depends_on_the_seed_alone() -> None:
    task, recipe = make_task("parity"), small_recipe()
    runs = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(runs))  # the global generator must not matter
        runs.append(train(make_model("regular-gpt", task, **SMALL), task, recipe, seed=seed))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


# It trains a net of trees for seconds; in tests/models/test_rnn.py a net learns its task by default.
@pytest.mark.slow
@pytest.mark.unchecked
@pytest.mark.parametrize("supervision", ["last", "prefix"])
def test_training_lowers_the_loss(supervision: str) -> None:
    task = make_task("cycle-navigation", size=2)
    records = train(
        make_model("regular-gpt", task, **SMALL),
        task,
        small_recipe(steps=300, max_length=4, supervision=supervision, batch_size=64),
    )
    start, end = (sum(record.loss for record in part) / 20 for part in (records[:20], records[-20:]))
    assert end < 0.5 * start


def test_the_average_follows_the_weights() -> None:
    task = make_task("parity")
    recipe = small_recipe(steps=3, ema_decay=0.5)
    state = small_state(task, recipe)
    name, parameter = next(iter(state.model.named_parameters()))
    expected = parameter.detach().clone()
    for step, _ in enumerate(training_steps(state, task, recipe, seed=0), start=1):
        decay = min(0.5, step / (step + 10))
        expected = decay * expected + (1 - decay) * parameter.detach()
        torch.testing.assert_close(state.average[name], expected)
    state.load_final_weights()
    torch.testing.assert_close(parameter.detach(), expected)


@pytest.mark.unchecked
def test_lengths_are_balanced_and_sampled_as_the_recipe_says() -> None:
    dyck = make_task("bounded-dyck", depth=2)
    assert training_lengths(dyck, small_recipe(lengths="balanced")) == ([2, 4, 6, 8, 10, 12], [])
    assert training_lengths(dyck, small_recipe(lengths="legal")) == (list(range(1, 13)), [])
    assert training_lengths(dyck, small_recipe()) == ([2, 4, 6, 8, 10, 12], [1, 3, 5, 7, 9, 11])
    recipe = Recipe(steps=60, batch_size=1, max_length=4, ema_decay=0)
    lengths = [record.length for record in training_steps(smallest_state(dyck, recipe), dyck, recipe, seed=0)]
    assert set(lengths[:30]) == {2, 3, 4}, "a length below all balanced ones in the first half"
    assert set(lengths[30:]) == {1, 2, 3, 4}
    task = make_task("parity")
    for sampling, share in (("uniform", 0.5), ("log-uniform", math.log(21) / math.log(41))):
        recipe = Recipe(steps=60, batch_size=1, length_sampling=sampling, max_length=40, ema_decay=0)
        state = smallest_state(task, recipe)
        short = [record.length <= 20 for record in training_steps(state, task, recipe, seed=0)]
        assert sum(short) / 60 == pytest.approx(share, abs=0.13)


def test_divergence_stops_before_it_harms_the_weights() -> None:
    task, recipe = make_task("parity"), small_recipe()
    state = small_state(task, recipe)
    steps = training_steps(state, task, recipe, seed=0)
    next(steps)
    with torch.no_grad():
        state.model.readout[1].weight[0, 0] = math.inf
    before = {name: p.clone() for name, p in state.model.named_parameters()}
    with pytest.raises(Diverged, match=r"diverged at step 2.*learning_rate"):
        next(steps)
    assert state.step == 1
    assert all(torch.equal(before[name], p) for name, p in state.model.named_parameters())


def test_the_rate_rises_and_falls() -> None:
    recipe = validated(Recipe, {"steps": 1000, "optimizer": {"learning_rate": 0.01, "warmup_steps": 100}})
    rates = [recipe.optimizer.learning_rate * recipe.rate_factor_at(step) for step in range(1000)]
    assert rates[0] == pytest.approx(0.0001, rel=0.01)
    assert max(rates) == rates[99]
    assert rates[99:] == sorted(rates[99:], reverse=True)
    assert rates[-1] < 1e-6
    constant = Recipe(**PRESETS["chi2023"].train)
    assert {constant.rate_factor_at(step) for step in (0, 5, 99_999)} == {1.0}


def test_a_linear_schedule_rises_and_falls_to_nothing() -> None:
    recipe = Recipe(steps=10, optimizer={"schedule": "linear", "warmup_steps": 4})
    factors = [recipe.rate_factor_at(step) for step in range(10)]
    assert factors == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])
    published = Recipe(**PRESETS["xu2024"].train)
    assert published.optimizer.warmup_steps == pytest.approx(published.steps * 5 / 100, abs=1)
    assert published.steps * published.batch_size == 100 * 1_000_000


def test_lengths_rise_by_a_curriculum() -> None:
    recipe = Recipe(**PRESETS["xu2024-in-context"].train)
    lengths = list(range(26, 102))
    for step, length in ((0, 26), (4_999, 26), (5_000, 31), (74_999, 96), (75_000, 101), (199_999, 101)):
        odds = recipe.length_odds_at(step, lengths)
        assert odds.index(1.0) == lengths.index(length)
        assert sum(odds) == 1.0
    assert Recipe(rise={"by": 2, "every": 1}, min_length=3).length_odds_at(1, [3, 4, 6]) == [0.0, 1.0, 0.0]


def test_no_string_is_longer_than_the_curriculum_has_come_to() -> None:
    task = make_task("bounded-dyck", depth=2)
    settings = {"min_length": 2, "max_length": 20, "steps": 15, "batch_size": 2, "rise": {"by": 2, "every": 5}}
    recipe = make_spec("bounded-dyck", "gru", {"train": settings}).recipe
    records = train(make_model("gru", task, d_model=4), task, recipe)
    assert [record.length <= 2 + 2 * ((record.step - 1) // 5) for record in records] == [True] * 15
    with pytest.raises(ValueError, match="rise: expected no rise with length_sampling='growing'"):
        Recipe(rise={"by": 2}, length_sampling="growing")


def test_a_recipe_without_a_curriculum_is_written_down_as_before_there_were_any() -> None:
    assert "rise" not in Recipe().model_dump(mode="json")
    rising = Recipe(rise={"by": 2})
    assert Recipe(**rising.model_dump(mode="json")) == rising


def test_short_strings_come_first() -> None:
    recipe = Recipe(steps=100, length_sampling="short-first")
    assert recipe.length_odds_at(0, [1, 2, 4]) == [1.0, 0.5, 0.25]
    assert recipe.length_odds_at(25, [1, 4]) == [1.0, 0.5]
    assert recipe.length_odds_at(50, [1, 4]) == [1.0, 1.0]
    assert recipe.length_odds_at(100, [1, 2, 4]) == [1.0, 2.0, 4.0]


@pytest.mark.unchecked
def test_lengths_grow_when_the_loss_at_the_longest_is_small() -> None:
    task, recipe = make_task("parity"), small_recipe(steps=400, length_sampling="growing", max_length=3)
    state = small_state(task, recipe)
    reached, running = 1, 2.0
    for record in training_steps(state, task, recipe, seed=0):
        assert record.length <= reached
        if record.length == reached < 3:
            running = 0.9 * running + 0.1 * record.loss
            if running < 0.3:
                reached, running = reached + 1, 2.0
        assert state.growth.num_reached == reached
        if reached == 3:
            return
    pytest.fail("lengths did not grow to the longest")


def test_a_checkpoint_keeps_how_far_lengths_have_grown(tmp_path: Path) -> None:
    task, recipe = make_task("parity"), small_recipe(length_sampling="growing")
    state = small_state(task, recipe)
    assert [record.length for record in training_steps(state, task, recipe, seed=0)] == [1] * 30
    state.growth = Growth(5, state.growth.loss / 3)
    save_checkpoint(state, tmp_path / "checkpoint", "a")
    again = small_state(task, recipe)
    load_checkpoint(again, tmp_path / "checkpoint", "a")
    assert again.growth == state.growth


def test_checkpoints_of_equal_runs_are_equal_files(tmp_path: Path) -> None:
    task, recipe = make_task("parity"), small_recipe(steps=3)
    files = []
    for _ in range(6):
        state = small_state(task, recipe)
        list(training_steps(state, task, recipe, seed=0))
        save_checkpoint(state, tmp_path / "checkpoint", "a")
        files.append((tmp_path / "checkpoint").read_bytes())
    assert len(set(files)) == 1


def test_a_checkpoint_whose_step_was_changed_is_rejected(tmp_path: Path) -> None:
    task, recipe = make_task("parity"), small_recipe()
    state = small_state(task, recipe)
    path = tmp_path / "checkpoint"
    save_checkpoint(state, path, "a")
    content = path.read_bytes()
    assert content.count(b'"step":"0"') == 1
    path.write_bytes(content.replace(b'"step":"0"', b'"step":"1"'))
    with pytest.raises(ValueError, match="its contents have changed"):
        load_checkpoint(state, path, "a")


def test_a_length_that_is_not_learned_holds_growth_up() -> None:
    recipe = small_recipe(length_sampling="growing")
    assert recipe.length_odds_at(0, [1, 3, 5], 2) == [1.0, 3.0, 0.0]
    growth = Growth()
    for _ in range(1000):
        growth = growth.after(0.31)
    assert growth.num_reached == 1


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


@pytest.mark.parametrize(("ratio", "limits"), [(2.0, (0.02, 0.02, 1.0)), (0.0, (1.0, 1.0, 1.0))])
def test_a_gradient_is_clipped_at_the_running_norm_of_those_before(ratio, limits, monkeypatch) -> None:
    """Not below `MIN_CLIP_NORM`, and never above `clip_norm`, however large those before were."""
    task, recipe = make_task("parity"), small_recipe(steps=1, optimizer={"clip_ratio": ratio})
    supervised = []
    clip = torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(
        torch.nn.utils, "clip_grad_norm_", lambda given, limit: supervised.append(limit) or clip(given, limit)
    )
    for before in (0.01, MIN_CLIP_NORM / 100, 5.0):
        state = small_state(task, recipe)
        state.gradient_norm = before
        (record,) = training_steps(state, task, recipe, seed=0)
        assert record.gradient_norm > 0.02  # before clipping
        assert state.gradient_norm == pytest.approx(0.95 * before + 0.05 * min(record.gradient_norm, supervised[-1]))
    assert supervised == pytest.approx([limits[0], MIN_CLIP_NORM if ratio else 1.0, limits[2]])


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


def test_final_weights_are_lent_and_taken_back() -> None:
    task, recipe = make_task("parity"), small_recipe(ema_decay=0.5)
    state = small_state(task, recipe)
    for _ in range(3):
        next(training_steps(state, task, recipe, seed=0))
    own = {name: p.detach().clone() for name, p in state.model.named_parameters()}
    with state.with_final_weights() as model:
        assert all(torch.equal(p, state.average[name]) for name, p in model.named_parameters())
        assert not all(torch.equal(p, own[name]) for name, p in model.named_parameters())
    assert all(torch.equal(p, own[name]) for name, p in state.model.named_parameters())


def test_half_way_noise_changes_and_states_are_compared() -> None:
    recipe = Recipe(steps=10, late_consistency=2.0, augmentation={"state_noise": 0.1, "late_state_noise": 0.4})
    assert [recipe.state_noise_at(step) for step in (0, 4, 5, 9)] == [0.1, 0.1, 0.4, 0.4]
    assert [recipe.consistency_at(step) for step in (0, 4, 5, 9)] == [0.0, 0.0, 2.0, 2.0]


@given(st.integers(0, 2**70), st.lists(st.one_of(st.integers(), st.text()), max_size=3))
def test_generators_are_named(seed: int, purpose: list) -> None:
    one, same = generator_for(seed, *purpose), generator_for(seed, *purpose)
    assert torch.equal(torch.rand(3, generator=one), torch.rand(3, generator=same))


def test_generators_of_large_seeds_differ() -> None:
    """torch's own seeding keeps 32 bits: seeds 1 and 1 + 2^32 would give the same numbers."""
    draws = {tuple(torch.rand(2, generator=generator_for(seed)).tolist()) for seed in (1, 1 + 2**32, 1 + 2**33)}
    assert len(draws) == 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"stps": 5}, "train.stps: no such setting; did you mean 'steps'?"),
        (
            {"optimizer": {"learning_rat": 1}},
            "train.optimizer.learning_rat: no such setting; did you mean 'learning_rate'",
        ),
        ({"steps": 0}, "train.steps: expected a number greater than or equal to 1, got 0"),
        ({"min_length": 50}, "train.min_length: expected at most max_length=40, got 50"),
        ({"supervision": "all"}, "train.supervision: expected 'last' or 'prefix', got 'all'"),
    ],
)
def test_bad_recipes_are_rejected_in_one_sentence(settings: dict, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the sentence is compared below
        validated(Recipe, settings, path="train")
    assert sentence in str(caught.value)


@pytest.mark.unchecked
def test_what_is_no_model_task_or_recipe_is_named() -> None:
    task = make_task("parity")
    model, recipe = make_model("rnn", task, d_model=4), Recipe(steps=1)
    for arguments, sentence in [
        ((nn.Linear(2, 2), task, recipe), "model: expected a model of this package, got Linear; .*wrap"),
        ((model, "parity", recipe), "task: expected a task"),
        ((model, task, {"steps": 1}), "recipe: expected a Recipe, got a dict; write Recipe"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            train(*arguments)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"stepz": 3}, "stepz: no such setting; did you mean 'steps'?"),
        ({"steps": -1}, "steps: expected a number greater than or equal to 1, got -1"),
        ({"steps": "abc"}, "steps: expected a valid integer, got 'abc'"),
        (
            {"optimizer": {"name": "adamx"}},
            "optimizer.name: expected 'muon', 'adamw', 'adam' or 'baum-welch', got 'adamx'",
        ),
    ],
)
def test_a_recipe_written_in_python_is_refused_in_the_words_of_the_command_line(settings, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the sentence has brackets
        Recipe(**settings)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_positions_that_a_model_lacks_are_named_before_training_comes_to_them() -> None:
    spec = make_spec("parity", "transformer", {"model": {"learned_positions": 10, "positions": "learned"}})
    recipe = spec.recipe.model_copy(update={"max_length": 40})
    sentence = r"^train.max_length: expected strings of at most 10 symbols, .* got 40 at length 40; lower it, or give"
    with pytest.raises(ValueError, match=sentence):
        TrainingState(spec.make_model(), recipe, spec.task)


def test_pads_that_a_model_does_not_read_are_named() -> None:
    spec = make_spec("edit-distance", "gru", {"train": {"steps": 2}})
    with pytest.raises(ValueError, match=r"-1 is the pad, which fills up shorter strings of a batch; use a model that"):
        train(spec.make_model(), spec.task, spec.recipe)


def test_leading_pads_are_few_numbers_for_trees_alone() -> None:
    recipe = Recipe(augmentation={"state_noise": 0, "late_state_noise": 0, "leading_pads": 1_000_000})
    task = make_task("parity")
    check_memory(make_model("regular-gpt", task, d_model=16, num_heads=2), recipe)
    with pytest.raises(ValueError, match=r"^train: expected a step of at most 8,589,934,592 numbers"):
        check_memory(make_model("transformer", task), recipe)
