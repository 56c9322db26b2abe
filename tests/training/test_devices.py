"""Training and measuring on another device, for every model: the CPU waits where it must, and nowhere else."""

from functools import cache
from typing import Any

import pytest
import torch
from second_device import DEVICE, OnDevice, second_device

from lengthwise.devices import find_device
from lengthwise.evaluation.error_curve import error_curve
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.evaluation.perplexity import perplexity_curve
from lengthwise.layers.positions.base import POSITIONS
from lengthwise.models import MODELS, make_model
from lengthwise.runs.spec import RunSpec, make_spec
from lengthwise.tasks import VectorTask, make_task
from lengthwise.tasks.text.language import LanguageTask
from lengthwise.training.loop import TrainingState, training_steps

WAITS = {
    "training/loop.py:_on_host": "once a step: losses and the gradient's norm decide whether it is taken",
    "evaluation/length_curve.py:final_answers": "once a part: answers are counted on the CPU",
    "evaluation/length_curve.py:prefix_answers": "once a part: answers are counted on the CPU",
    "evaluation/perplexity.py:_point": "once a length: what tokens count is kept as numbers",
    "evaluation/error_curve.py:error_curve": "once a part: errors are averaged on the CPU",
    "ops/tree_attention.py:_merge_distinct": "windows that repeat are merged once: how many differ is a size",
    "ops/tree_attention.py:_num_leading_pads": "pads in front of all strings are left out: their number is a size",
    "training/state_supervision.py:combine": "pieces are drawn on the CPU, with all maps as often",
    "layers/codebook.py:is_empty": "whether there are codes yet decides what a merge is, and whether to look for some",
    "layers/block_linear.py:transitions": "temperature 0 is another function of the same weights",
    "layers/block_linear.py:initial_state": "temperature 0 is another function of the same weights",
    "layers/grid_cells.py:is_rule": "temperature 0 is another function of the same weights",
    "layers/grid_cells.py:_distribution": "temperature 0 is another function of the same weights",
    "models/grid_recurrence.py:_compact": "the longest first string of a batch is the height of its grid",
    "ops/symbol_recurrence.py:_is_one_hot": "states of one-hot vectors are followed as positions of a 1",
    "ops/symbol_recurrence.py:_sums_by_symbol": "positions of a symbol are one product: how many there are is a size",
    "ops/sparse_recurrence.py:__init__": "positions of a symbol are one product: how many there are is a size",
    "models/looped_transformer.py:_converged": "loops end when no state changes any more",
    "ops/intervals.py:is_sum_exact": "bounds of sums that are exact are not widened",
    "ops/intervals.py:binary_digits": "bounds of sums that are exact are not widened",
    "layers/positions/fire.py:rows": "a learned limit decides which of two forms gives the biases",
}
"""Where the CPU waits for the device, each with the reason why it has to."""

SETTINGS = {"train": {"batch_size": 4, "min_length": 1, "max_length": 9, "steps": 4}}


def short(name: str, task: str = "parity", /, **sections: dict[str, Any]) -> RunSpec:
    train = SETTINGS["train"] | sections.pop("train", {})
    return make_spec(task, name, {"train": train, **sections})


LOOPED = {"d_model": 8, "num_heads": 2, "num_loops": 1}

CASES = {name: short(name, model={"num_loops": 2} if name == "looped-transformer" else {}) for name in MODELS} | {
    f"positions {name}": short(
        "transformer",
        model={"positions": name, "d_model": 8, "num_heads": 2, "num_layers": 1}
        | ({"learned_positions": 40} if name == "learned" else {}),
        train={"supervision": "prefix"},
    )
    for name in POSITIONS
}
CASES |= {
    "vectors": short("transformer", "decision-tree", task={"depth": 2, "dims": 3, "max_points": 9}),
    "answers inside": short("transformer", "edit-distance", model={"d_model": 8, "num_heads": 2, "num_layers": 1}),
    "loops by length": short("looped-transformer", model=LOOPED | {"loops": "length"}),
    "loops by states": short("looped-transformer", model=LOOPED | {"loops": "converged", "max_loops": 4}),
    "states": short("regular-gpt", train={"states": {"batch_size": 4, "max_length": 9, "combined": 8}}),
    "text": short("transformer", "text", model={"d_model": 8, "num_heads": 2, "num_layers": 1}),
    "text, streamed": short("gru", "text", model={"d_model": 8}),
    "contraction": short("gru", model={"d_model": 8}, train={"contraction": {"after": 0.0}}),
}


def trained(spec: RunSpec, device: torch.device) -> tuple[TrainingState, list[float]]:
    """After three of four steps, the last in the second half of training; their losses and norms of gradients."""
    state, reported = TrainingState(spec.make_model().to(device), spec.recipe, spec.task), []
    for record in training_steps(state, spec.task, spec.recipe, seed=0):
        reported += [record.loss, record.gradient_norm]
        if record.step == 3:
            break
    return state, reported


@cache
def trained_here(case: str) -> tuple[TrainingState, list[float]]:
    return trained(CASES[case], torch.device("cpu"))


def measured(state: TrainingState, spec: RunSpec) -> object:
    if isinstance(spec.task, VectorTask):
        return error_curve(state.model, spec.task, 9, num_prompts=3)
    if isinstance(spec.task, LanguageTask):
        return perplexity_curve(state.model, spec.task, [3, 9], num_chunks=3)
    lengths = [length for length in (3, 8, 9) if spec.task.is_legal_length(length)]
    return length_curve(state.model, spec.task, lengths, num_strings=5)


OTHERS = [case for case in CASES if case not in MODELS]
BY_DEFAULT = [*MODELS, *(pytest.param(case, marks=[pytest.mark.slow] * (n % 3 > 0)) for n, case in enumerate(OTHERS))]


CHOOSING = {"pd-ssm"}
"""Models in which a rounding may decide what is largest, so that after some steps losses are others."""


@pytest.mark.unchecked
@pytest.mark.parametrize("case", BY_DEFAULT)
def test_another_device_gives_the_same_and_is_waited_for_where_it_must(case: str) -> None:
    spec = CASES[case]
    here, losses = trained_here(case)
    with second_device() as visits:
        there, on_device = trained(spec, DEVICE)
        curve = measured(there, spec)
    compared = 3 if case in CHOOSING else len(losses)
    assert on_device[:compared] == pytest.approx(losses[:compared], rel=2e-3)
    assert type(curve) is type(measured(here, spec))
    assert all(isinstance(parameter, OnDevice) for parameter in there.parameters.values())
    assert not visits.mixed
    assert visits.trips <= set(WAITS)
    assert "training/loop.py:_on_host" in visits.trips


def test_a_second_device_finds_round_trips_and_mixed_operations() -> None:
    with second_device() as visits:
        there = torch.arange(4, device=DEVICE)
        assert int(there.sum()) == 6
        assert bool((there + 1 > 0).all())
        assert there.cpu().tolist() == [0, 1, 2, 3]
        assert torch.tensor([1], device=DEVICE).tolist() == [1]
        assert len(there[there > 1]) == 2
        there + torch.arange(4)
    assert visits.trips == {"torch"}
    assert visits.mixed == {"torch (aten.add.Tensor)"}


def test_foreign_symbols_stop_a_device_by_themselves() -> None:
    model = make_model("gru", make_task("parity"))
    with second_device() as visits:
        model.to(DEVICE)
        with pytest.raises(RuntimeError, match=r"inputs: expected symbol ids in 0\.\.1, got others"):
            model.last(torch.tensor([[0, 2]]).to(DEVICE))
    assert not visits.trips


def test_a_device_that_is_not_there_is_said() -> None:
    for name in ("cuda", "mps"):
        with pytest.raises(ValueError, match=f"device: expected a device of this machine, got '{name}', .*; take cpu"):
            find_device(name)
    with pytest.raises(ValueError, match="device: expected one of auto, cpu, cuda, mps, got 'gpu'"):
        find_device("gpu")
    assert find_device("auto").type == "cpu"


@pytest.mark.unchecked
@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_trains_in_bfloat16(name: str) -> None:
    spec = CASES[name]._replace(recipe=CASES[name].recipe.model_copy(update={"precision": "bfloat16"}))
    assert spec.id != CASES[name].id
    state, losses = trained(spec, torch.device("cpu"))
    assert {parameter.dtype for parameter in state.model.parameters()} == {torch.float32}
    _, exact = trained_here(name)
    assert losses == pytest.approx(exact, rel=0.2)
    assert losses != exact or name == "grid-recurrence"  # whose categorical messages have no products of matrices
    measured(state, spec)
