"""Checks, before training starts, that a task and a model meet the requirements of a recipe."""

from collections.abc import Mapping

import torch
from torch import nn

from lengthwise.models.base import MODELS, SequenceModel, TreeModel
from lengthwise.models.capabilities import (
    AcceptsNoise,
    AcceptsPads,
    BoundsSteps,
    HasHiddenMatrices,
    HoldsDistributions,
    ShowsNodes,
)
from lengthwise.randomness import generator_for
from lengthwise.registry import nearest
from lengthwise.tasks.base import RegularTask, SymbolTask, Task, VectorTask
from lengthwise.training.batches import training_lengths
from lengthwise.training.recipe import Recipe, TaskRiseRecipe
from lengthwise.validation import quoted, validated

MAX_ACTIVATIONS = 1 << 33
"""The largest estimated number of activations in a step (`check_memory`). This many activations take 32 GB in float32,
as much as a large GPU has."""


def check_task(task: Task, recipe: Recipe) -> None:
    """Raise a ValueError if the task lacks what the recipe needs: pads, a machine, or a field for `task_rise`."""
    augmentation = recipe.augmentation
    if isinstance(task, VectorTask) and (
        augmentation.padding or augmentation.leading_padding or recipe.late_consistency
    ):
        raise ValueError(
            f"train.augmentation: expected no pads for {task.name}, whose inputs are vectors; set padding, "
            "leading_padding and train.late_consistency to 0, as all presets except fast do"
        )

    if recipe.states and not isinstance(task, RegularTask):
        raise ValueError(
            f"train.states: expected a task that a finite machine solves, got {task.name}, which has no machine whose "
            "states could be supervised; leave out train.states"
        )
    if recipe.task_rise is not None:
        _check_task_rise(task, recipe.task_rise)


def check_trainable(model: SequenceModel) -> None:
    """Raise a ValueError if training cannot change the model's weights, or would make sparse gradients.

    Training changes no weight if gradients are off, if no weight is trainable, or if a type below float32 rounds steps
    away.
    """
    # Otherwise the first backward pass fails, with torch's message about a tensor without a gradient.
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        raise ValueError(
            "train: expected a call that may compute gradients, got a call within no_grad or inference_mode; train "
            "outside of both"
        )
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not trained or any(parameter.is_inference() for parameter in model.parameters()):
        raise ValueError(
            f"model: expected weights to train, got a {model.name} without trainable weights, or with weights made "
            "within inference_mode; make the model outside of inference_mode, and set requires_grad to True"
        )
    for name, parameter in trained.items():
        if parameter.is_floating_point() and parameter.itemsize < 4:
            # A step below half a unit in the last place is rounded away. In bfloat16, this is 1/512 to 1/256 of the
            # weight.
            raise ValueError(
                f"model: expected weights in float32 or float64, got {name} in {parameter.dtype}; train "
                "model.float(), and convert the weights afterwards"
            )
    for name, part in model.named_modules():
        if isinstance(part, nn.Embedding | nn.EmbeddingBag) and part.sparse and part.weight.requires_grad:
            raise ValueError(
                f"model: expected dense gradients, which all optimizers here require, got {name} with sparse=True; set "
                f"model.get_submodule({name!r}).sparse = False"
            )


def check_gradients(parameters: Mapping[str, nn.Parameter]) -> None:
    """Raise a ValueError if a gradient is sparse, for example from `F.embedding(..., sparse=True)` in `forward`."""
    for name, parameter in parameters.items():
        if parameter.grad is not None and parameter.grad.layout != torch.strided:
            raise ValueError(
                f"model: expected dense gradients, which all optimizers here require, got a sparse gradient of {name}; "
                "leave sparse=True out of the call that reads this parameter, such as F.embedding"
            )


def _check_task_rise(task: Task, rise: TaskRiseRecipe) -> None:
    """Raise a ValueError if the task lacks the field, or if `start` or `stop` is illegal or changes model shapes."""
    fields = {name: getattr(task, name) for name in type(task).model_fields}
    numbers = [name for name, value in fields.items() if value is None or type(value) is int]
    if rise.field not in numbers:
        way_out = nearest(rise.field, numbers) or (
            "; choose one of these" if numbers else "; leave out train.task_rise"
        )
        raise ValueError(
            f"train.task_rise.field: expected a field of {task.name} that takes integers "
            f"({', '.join(numbers) or 'it has none'}), got {quoted(rise.field)}{way_out}"
        )
    for name in ("start", "stop"):
        value = getattr(rise, name)
        try:
            changed = validated(type(task), {**fields, rise.field: value}, path="task")
        except ValueError as error:
            raise ValueError(
                f"train.task_rise.{name}: expected a value that {task.name} allows, got {value} "
                f"({str(error).rsplit('; ', 1)[0]}); change train.task_rise.{name}"
            ) from None
        if _shapes(changed) != _shapes(task):
            raise ValueError(
                f"train.task_rise.field: expected a field that keeps the task's symbols, classes and input size, got "
                f"{quoted(rise.field)}, which changes them; choose another field, such as active_dims of decision-tree"
            )


def _shapes(task: Task) -> object:
    """Return everything about a task that determines the shapes of a model."""
    if isinstance(task, VectorTask):
        return task.input_dim
    return (task.symbols, task.classes) if isinstance(task, SymbolTask) else None


def check_model(model: type[SequenceModel], recipe: Recipe) -> None:
    """Raise a ValueError if the model lacks a capability that the recipe needs."""
    augmentation = recipe.augmentation
    if (augmentation.padding or augmentation.leading_padding) and not issubclass(model, AcceptsPads):
        known = model.name if model.name in MODELS else "gru"  # a wrapped net has no preset recipe of its own
        raise ValueError(
            f"train.augmentation: {model.name} accepts no pads; set padding, leading_padding and late_consistency to "
            f"0, as in make_spec('parity', {known!r}).recipe"
        )
    if recipe.late_consistency and not issubclass(model, AcceptsPads):
        raise ValueError(
            f"train.late_consistency: expected 0 for {model.name}, which accepts no pads, got "
            f"{recipe.late_consistency:g}; set train.late_consistency to 0"
        )
    if (augmentation.state_noise or augmentation.late_state_noise) and not issubclass(model, AcceptsNoise):
        raise ValueError(
            f"train.augmentation: {model.name} accepts no noise; set state_noise and late_state_noise to 0"
        )
    if recipe.contraction is not None and not issubclass(model, BoundsSteps):
        raise ValueError(
            f"train.contraction: expected a model that computes bounds on its next states, got {model.name}; leave "
            "out train.contraction"
        )
    if recipe.states and not issubclass(model, ShowsNodes):
        raise ValueError(
            f"train.states: expected a model with a tree of nodes to supervise, got {model.name}; leave out "
            "train.states"
        )
    if recipe.optimizer.counts_outcomes and not issubclass(model, HoldsDistributions):
        raise ValueError(
            f"train.optimizer.name: expected 'adamw' or 'adam' for {model.name}, which has no tables of probabilities, "
            "got 'baum-welch'; choose 'adamw', or a block-linear-rnn with preset likelihood"
        )
    if recipe.optimizer.name == "muon" and not issubclass(model, HasHiddenMatrices):
        raise ValueError(
            f"train.optimizer.name: expected 'adamw' or 'adam' for {model.name}, which names no hidden matrices for "
            "Muon, got 'muon'; choose 'adamw'"
        )


def check_pieces(model: SequenceModel, recipe: Recipe) -> None:
    """Raise a ValueError if supervision by states would merge pieces of strings with fewer layers than the model."""
    if recipe.states and recipe.states.rounds and isinstance(model, TreeModel) and len(model.tree.layers) > 1:
        raise ValueError(
            f"train.states.rounds: expected 0 for a model of thickness {len(model.tree.layers)}, got "
            f"{recipe.states.rounds}; set rounds to 0, or model.thickness to 1"
        )


def check_longest(model: SequenceModel, task: SymbolTask, recipe: Recipe) -> None:
    """Raise a ValueError if the model cannot read the longest strings that training draws."""
    if model.max_length is None:
        return
    longest = max(map(max, filter(None, training_lengths(task, recipe))))
    # A task's length can differ from the number of symbols, so a string is drawn and counted.
    num_symbols = task.sample(1, longest, generator_for(0, "longest")).inputs.shape[1]
    if num_symbols > model.max_length:
        raise ValueError(
            f"train.max_length: expected strings of at most {model.max_length:,} symbols, the most that {model.name} "
            f"reads, got {num_symbols:,} symbols at length {longest:,}; lower train.max_length, or "
            "give the model more positions"
        )


def check_memory(model: SequenceModel, recipe: Recipe) -> None:
    """Raise a ValueError if a batch at the largest length is estimated to have more than `MAX_ACTIVATIONS` activations.

    At every position, pads included, each weight matrix computes one activation for each of its rows. Parameters may be
    on the device "meta" (`lengthwise.models.base.outline`). Tree models merge leading pads, so each leading pad of a
    tree model counts as one activation.
    """
    augmentation = recipe.augmentation
    per_position = sum(matrix.shape[0] for matrix in model.parameters() if matrix.ndim > 1)
    length = recipe.max_length * (1 + (augmentation.pads_per_symbol if augmentation.padding else 0))
    pads = augmentation.leading_pads if augmentation.leading_padding else 0
    per_pad = 1 if isinstance(model, TreeModel) else per_position
    count = round(recipe.batch_size * (length * per_position + pads * per_pad))
    if count > MAX_ACTIVATIONS:
        raise ValueError(
            f"train: expected at most {MAX_ACTIVATIONS:,} activations in a step, got {count:,} with a batch of "
            f"{recipe.batch_size:,} strings of {recipe.max_length:,} symbols; lower batch_size or max_length"
        )
