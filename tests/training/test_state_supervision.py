"""Trees that are told what pieces of strings do to the states of a machine."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.conventions import PAD
from lengthwise.models import make_model
from lengthwise.ops.tree import num_levels
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.training.checkpoint import load_checkpoint, save_checkpoint
from lengthwise.training.loop import TrainingState, train, training_steps
from lengthwise.training.recipe import Recipe, StatesRecipe
from lengthwise.training.state_supervision import StateHead, draw_pieces, maps_of_nodes, nodes_of

SMALL = {"d_model": 16, "num_heads": 2}
RECIPE = Recipe(
    steps=30, batch_size=16, max_length=12, checkpoint_every=10, states=StatesRecipe(batch_size=16, max_length=20)
)


def test_pieces_are_merged_by_the_one_layer_of_a_level() -> None:
    task = dyck()
    thick = make_model("regular-gpt", task, **SMALL, thickness=2)
    with pytest.raises(ValueError, match=r"^train.states.rounds: expected 0 for a model of thickness 2, got \d+; set"):
        TrainingState(thick, RECIPE, task)
    TrainingState(thick, RECIPE.model_copy(update={"states": StatesRecipe(batch_size=16, rounds=0)}), task)


def dyck():
    return make_task("bounded-dyck", depth=3)


def table_of(task) -> torch.Tensor:
    return StateHead(task.transducer.minimize().semiautomaton, 4).table


@given(seed=st.integers(0, 99), length=st.integers(1, 40), chunk=st.integers(2, 4), pads=st.floats(0, 1))
def test_the_map_of_a_node_is_what_its_symbols_do(seed: int, length: int, chunk: int, pads: float) -> None:
    table, generator = table_of(dyck()), torch.Generator().manual_seed(seed)
    strings = torch.randint(2, (2, length), generator=generator)
    strings[torch.rand(strings.shape, generator=generator) < pads] = PAD
    levels = maps_of_nodes(strings, table, lambda level: chunk)
    assert len(levels) == num_levels(length, chunk) + 1
    assert levels[-1].shape[1] == 1
    for level, maps in enumerate(levels):
        size = chunk**level
        for node in range(maps.shape[1]):
            stop = length - (maps.shape[1] - node - 1) * size
            for string, map_of_node in zip(strings[:, max(0, stop - size) : stop].tolist(), maps[:, node], strict=True):
                for state in range(len(table)):
                    end = state
                    for symbol in string:
                        end = end if symbol == PAD else int(table[end, symbol])
                    assert int(map_of_node[state]) == end


@pytest.mark.parametrize("chunk_size", [2, 3])
@pytest.mark.parametrize("leading", [0, 11])
def test_nodes_are_shown_with_their_own_maps(chunk_size: int, leading: int) -> None:
    """The state of a node is that of its piece read alone, behind pads that fill the tree: so is its map."""
    task = make_task("word-problem", group="S3")
    model = make_model("regular-gpt", task, chunk_size=chunk_size, **SMALL).double()
    model = model.perturbed(torch.clone)  # so that few levels share states
    strings = torch.randint(len(task.symbols), (40, 29), generator=torch.Generator().manual_seed(0))
    strings = torch.cat([strings.new_full((40, leading), PAD), strings], 1)
    table = table_of(task)
    states, maps = nodes_of(model, strings, table)
    levels = maps_of_nodes(strings, table, model.tree.chunk_size_at)
    count = len(strings)
    torch.testing.assert_close(states[-count:], model.last_state(strings))
    assert torch.equal(maps[-count:], levels[-1][:, -1])
    assert len(states) == len(maps) > count
    size = {2: 16, 3: 27}[chunk_size]  # of the nodes below the top, which are too many to be alike
    for row in range(count):
        piece = strings[row : row + 1, -size:]
        equal = states[:-count].isclose(model.last_state(piece)).all(1)
        assert equal.any()
        assert (maps[:-count][equal] == maps_of_nodes(piece, table, model.tree.chunk_size_at)[-1][0, 0]).all()


def test_the_loss_is_the_mean_over_nodes_and_states() -> None:
    machine = dyck().transducer.minimize().semiautomaton
    head, generator = StateHead(machine, 8).double(), torch.Generator().manual_seed(0)
    with torch.no_grad():
        head.weight.normal_(generator=generator)
        head.bias.normal_(generator=generator)
    nodes = torch.randn(7, 8, generator=generator, dtype=torch.float64)
    maps = torch.randint(machine.num_states, (7, machine.num_states), generator=generator)
    normed = (nodes - nodes.mean(1, keepdim=True)) / (nodes.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
    expected = 0.0
    for node, map_of_node in zip(normed, maps, strict=True):
        for state, end in enumerate(map_of_node.tolist()):
            logits = head.weight[state] @ node + head.bias[state]
            expected = expected - logits.log_softmax(0)[end] / maps.numel()
    torch.testing.assert_close(head.loss(nodes, maps, generator), expected)


def test_pieces_have_every_length_and_are_not_only_beginnings() -> None:
    task, generator = dyck(), torch.Generator().manual_seed(0)
    recipe = StatesRecipe(batch_size=8, max_length=12, uniform=0.5)
    drawn = [draw_pieces(task, recipe, generator) for _ in range(400)]
    assert {pieces.shape[1] for pieces in drawn} == set(range(1, 13))
    assert {int(symbol) for pieces in drawn for symbol in pieces[:, 0]} == {0, 1}


@pytest.mark.slow
def test_what_pieces_do_is_learned() -> None:
    """Parity, pieces of at most 20 symbols: the loss of the maps, which began at log 2, is low on those of 31."""
    task = make_task("parity")
    recipe = Recipe(
        steps=200,
        batch_size=32,
        max_length=12,
        states=StatesRecipe(batch_size=32, max_length=20),
        optimizer={"warmup_steps": 20},
        **_plain(),
    )
    model = make_model("regular-gpt", task, d_model=32, num_heads=4)
    state = TrainingState(model, recipe, task)
    for _ in training_steps(state, task, recipe, seed=0):
        pass
    pieces = torch.randint(2, (64, 31), generator=torch.Generator().manual_seed(1))
    assert state.state_head is not None
    with torch.no_grad():
        loss = state.state_head.loss(*nodes_of(model, pieces, state.state_head.table), torch.Generator())
    assert float(loss) < 0.35


def test_training_goes_on_from_a_checkpoint_as_if_undisturbed(tmp_path: Path) -> None:
    task = dyck()

    def fresh() -> TrainingState:
        model = make_model("regular-gpt", task, **SMALL)
        return TrainingState(model, RECIPE, task)

    whole, first, second = fresh(), fresh(), fresh()
    list(training_steps(whole, task, RECIPE, seed=0))
    for record in training_steps(first, task, RECIPE, seed=0):
        if record.step == 12:
            break
    save_checkpoint(first, tmp_path / "checkpoint.safetensors", "same")
    load_checkpoint(second, tmp_path / "checkpoint.safetensors", "same")
    list(training_steps(second, task, RECIPE, seed=0))
    for name, parameter in whole.parameters.items():
        assert torch.equal(parameter, second.parameters[name]), name
    assert any(name.startswith("state_head") for name in whole.parameters)
    assert any(float(parameter.detach().abs().max()) > 0 for parameter in whole.head_parameters.values())


def test_other_recipes_are_what_they_were() -> None:
    assert "states" not in make_spec("parity", "regular-gpt", {}).to_json()["train"]
    assert make_spec("parity", "regular-gpt", {"train": {"states": {}}}).recipe.states == StatesRecipe()


@pytest.mark.parametrize(
    ("task", "model", "sentence"),
    [
        ("parity", "gru", "train.states: expected a model with a tree of nodes to supervise, got gru"),
        ("edit-distance", "regular-gpt", "train.states: expected a task that a finite machine solves, got edit-dist"),
    ],
)
def test_what_has_no_nodes_or_no_machine_is_refused(task: str, model: str, sentence: str) -> None:
    made = make_task(task)
    with pytest.raises(ValueError, match=sentence):
        make_spec(task, model, {"train": {"states": {}}})
    recipe = Recipe(steps=1, states=StatesRecipe(), optimizer={"name": "adamw"}, **_plain())
    with pytest.raises(ValueError, match=sentence):
        train(make_model(model, made), made, recipe)


def _plain() -> dict[str, object]:
    """Settings that every model accepts."""
    nothing = {"padding": 0.0, "leading_padding": 0.0, "state_noise": 0.0, "late_state_noise": 0.0}
    return {"augmentation": nothing, "late_consistency": 0.0}
