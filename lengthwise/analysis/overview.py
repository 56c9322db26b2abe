"""All analyses of a trained model on the same strings: clusters of states, receptive field, replaced symbols."""

from copy import deepcopy
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.analysis.clusters import LevelClusters, PrincipalComponents, level_clusters, principal_components
from lengthwise.analysis.receptive_field import FlipPoint, cumulative_field, flip_test, gradient_norms, tree_answer
from lengthwise.analysis.states import BlockStates, block_states
from lengthwise.conventions import IGNORE, PAD
from lengthwise.devices import one_thread
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.models.base import SequenceModel, check_is_model
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import RegularTask, Task, check_is_task
from lengthwise.validation import check_sizes

NUM_STRINGS = 200
"""The number of strings that are analyzed, which is also the largest number of states of each level."""

NUM_FIELD_STRINGS = 64
"""The number of strings, among the `NUM_STRINGS`, for which gradients are computed and symbols are replaced."""

NUM_FLIP_DISTANCES = 100
"""The largest number of distances at which symbols are replaced; they range from the last symbol to the first."""

RELATIVE_DISTANCE = 1 / 8
"""The distance at which clusters are counted, as a fraction of the root mean square norm of the states."""

MAX_LENGTH = 10_000
"""The largest length of the strings, in symbols. The states of longer strings do not fit into memory."""


class Analysis(NamedTuple):
    """The results of all analyses on the strings `inputs`; clusters of states are counted at distance `distance`."""

    inputs: Int64[Tensor, "B T"]
    num_right: int
    num_graded: int
    blocks: BlockStates
    components: PrincipalComponents
    levels: list[LevelClusters]
    distance: float
    cumulative: Float[Tensor, "B T"]
    flips: list[FlipPoint]


@one_thread()
def analyze(model: SequenceModel, task: Task, *, length: int = 500, seed: int = 0) -> Analysis:
    """Analyze the states, gradients and answers of a trained model on random strings.

    If some answer cannot occur at `length`, but all answers can occur at `length` - 1, strings have `length` - 1
    symbols.

    Raises:
        ValueError: the model is not a RegularGPT of thickness 1 (one layer per level) with one chunk size, or `length`
            is above 10,000. The task is not regular, has a single symbol or answer, lacks strings of this length, or
            has too large a monoid.
    """
    check_is_model(model)
    check_is_task(task)
    if not (isinstance(task, RegularTask) and isinstance(model, RegularGPT)):
        raise ValueError(
            f"model: expected a regular-gpt and a regular task, got {model.name} and {task.name}; choose a run of a "
            "regular-gpt on a regular task"
        )
    if min(len(task.symbols), len(task.classes)) < 2:
        raise ValueError(
            f"task: expected at least two symbols and at least two answers, got {len(task.symbols)} and "
            f"{len(task.classes)}; choose a run on another task"
        )
    check_sizes(length=length)
    if length > MAX_LENGTH:
        raise ValueError(f"length: expected at most {MAX_LENGTH:,} symbols, got {length:,}; give a smaller length")
    if not task.is_balanced_length(length) and task.is_balanced_length(length - 1):
        length -= 1
    batch = task.sample(NUM_STRINGS, length, generator_for(seed, "analysis strings", length))
    targets = batch.targets[:, -1]
    supervised = targets != IGNORE
    if not supervised.any():
        raise ValueError(
            f"length: expected strings that have an answer, got {NUM_STRINGS} strings of {length} symbols without an "
            "answer; choose another length"
        )
    with torch.no_grad():
        right = (final_answers(model, batch.inputs) == targets)[supervised]
    blocks = block_states(model, task, batch.inputs).subsample(NUM_STRINGS, generator_for(seed, "analysis states"))
    exact = deepcopy(model).double()  # in float32, gradients of a confident model may round to 0
    inputs = batch.inputs[supervised][:NUM_FIELD_STRINGS]
    targets = targets[supervised][:NUM_FIELD_STRINGS]
    norms = gradient_norms(tree_answer(exact), exact.tree.leaves[inputs - PAD], targets)
    distances = torch.linspace(0, length - 1, min(NUM_FLIP_DISTANCES, length)).round().int().tolist()
    return Analysis(
        inputs=batch.inputs,
        num_right=int(right.sum()),
        num_graded=len(right),
        blocks=blocks,
        components=principal_components(blocks.states),
        levels=level_clusters(blocks),
        distance=RELATIVE_DISTANCE * float(blocks.states.square().sum(1).mean().sqrt()),
        cumulative=cumulative_field(norms),
        flips=flip_test(model, task, inputs, distances, generator_for(seed, "analysis flips")),
    )
