"""What each of two processes does in tests of training together; they find one another as those of torchrun do."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from command import environment_of, free_port
from safetensors.torch import save_file

from lengthwise.conventions import IGNORE
from lengthwise.devices import one_thread
from lengthwise.models import make_model
from lengthwise.runs.pools.local import PRELOADED
from lengthwise.tasks import Batch, make_task
from lengthwise.training.checkpoint import gathered_tensors
from lengthwise.training.loop import TrainingState, training_steps
from lengthwise.training.parallel import joined
from lengthwise.training.ranks import ALONE, Parallel, Ranks
from lengthwise.training.recipe import Recipe

SMALL = {"d_model": 8, "num_heads": 2, "num_layers": 1}
CPU = torch.device("cpu")


def recipe_of(supervision: str, steps: int) -> Recipe:
    """Averages, clipping, warm-up, and batches of all lengths."""
    return Recipe(
        steps=steps,
        batch_size=8,
        max_length=8,
        lengths="legal",
        supervision=supervision,
        late_consistency=0.0,
        augmentation={"padding": 0.0, "leading_padding": 0.0, "state_noise": 0.0, "late_state_noise": 0.0},
        optimizer={"name": "adamw", "learning_rate": 0.01, "warmup_steps": 2},
    )


class RaggedParity(type(make_task("parity"))):  # type: ignore[misc]  # the class that the registry has
    """Parity of strings of which each asks nothing before a position of its own."""

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        batch = super().sample(batch_size, length, generator)
        begin = torch.randint(length, (batch_size, 1), generator=generator)
        return Batch(batch.inputs, batch.targets.masked_fill(torch.arange(length) < begin, IGNORE))


@one_thread()
def trained(recipe: Recipe, folder: Path, ranks: Ranks = ALONE) -> dict[str, torch.Tensor]:
    """All of a checkpoint after training in float64, and what the steps reported; in the first process."""
    made = RaggedParity()
    state = TrainingState(make_model("transformer", made, **SMALL).double(), recipe, made, ranks)
    reported = [(step.loss, step.gradient_norm) for step in training_steps(state, made, recipe, seed=3)]
    tensors = gathered_tensors(state, folder)
    return {**tensors, "reported": torch.tensor(reported, dtype=torch.float64)}


def train_together(kinds: list[Parallel], recipes: dict[str, Recipe], folder: Path) -> None:
    """Train by every recipe in every way, and save what comes of it as ``ddp-name.safetensors``."""
    with joined("ddp", CPU) as ranks:
        for kind in kinds:
            for name, recipe in recipes.items():
                tensors = trained(recipe, folder, ranks._replace(kind=kind))
                if ranks.rank == 0:
                    save_file(tensors, folder / f"{kind}-{name}.safetensors")


def say_other_versions(folder: Path) -> None:
    """Join as a process of another version would, and write down what is said of it."""
    import lengthwise.training.parallel as module

    module.__version__ = f"0.{os.environ['RANK']}"
    try:
        with joined("ddp", CPU):
            pass
    except ValueError as error:
        (folder / os.environ["RANK"]).write_text(str(error), encoding="utf-8")


def run_together(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in two processes that find one another; both have to end well."""
    context, port = multiprocessing.get_context("forkserver"), free_port()
    context.set_forkserver_preload(PRELOADED)  # there is one server
    processes = [
        context.Process(target=_run, args=(environment_of(rank, 2, port), function, arguments)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
    assert [process.exitcode for process in processes] == [0, 0]


def _run(environment: dict[str, str], function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.environ.update(environment)
    function(*arguments)
