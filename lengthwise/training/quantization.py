"""The search for codes during training. Codes are the vectors to which a model rounds its states."""

import torch

from lengthwise.extraction.base import radii_of
from lengthwise.extraction.tree import extract_tree
from lengthwise.extraction.tree_traces import build_trees, compare_traces
from lengthwise.models.base import SequenceModel, TreeModel
from lengthwise.models.capabilities import QuantizesStates
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import SymbolTask

RETRY_EVERY = 100
"""The number of steps between two attempts to find codes."""

NUM_STRINGS = 256
"""The number of strings on which all states have to stay in their classes before the prototypes become codes."""


def quantization_is_due(model: SequenceModel, before: int, step: int, steps: int) -> bool:
    """Return whether to look for codes before this step: about every `RETRY_EVERY` steps, until the model has codes.

    `step` is the position in the schedule, counted from 0, and `before` is the position at the previous step. With a
    `PaceRecipe`, the position can stay the same, or advance by several steps at once.
    """
    if not isinstance(model, QuantizesStates) or not model.codebook.is_empty:
        return False
    begin = int(model.quantize_after * steps)
    return step >= begin and (before < begin or (before - begin) // RETRY_EVERY < (step - begin) // RETRY_EVERY)


@torch.no_grad()
def quantize_states(model: SequenceModel, task: SymbolTask, *, length: int, seed: int) -> bool:
    """Find classes of the model's states, each with a prototype; prototypes of merged states become the model's codes.

    All classes have one radius: the first of a few candidates for which two conditions hold. There are at most as many
    classes as the model can have codes, and all states stay in their classes. The second condition is tested on the
    states of all nodes over strings of length `length` (`extract_tree`, `compare_traces`). Only the task's strings are
    used, not its answers. The result is True if a radius succeeds.
    """
    assert isinstance(model, QuantizesStates)
    assert isinstance(model, TreeModel)
    strings = task.sample(NUM_STRINGS, length, generator_for(seed, "codes")).inputs
    trees = [build_trees(model, strings)]
    for radius in radii_of(model.last_state(strings)):
        try:
            extraction = extract_tree(model, task.symbols, radius=radius, max_classes=len(model.codebook.codes))
        except ValueError:  # too many classes, or too many merges to compare
            continue
        if not compare_traces(model, extraction, trees).num_disagreements:
            model.codebook.fill(extraction.prototypes[extraction.num_given :])
            return True
    return False
