"""The time of drawing batches from a text next to the time of training, and the cost of training language models.

    python benchmarks/language.py            prints the table
    python benchmarks/language.py --save     also writes the dated numbers
    python benchmarks/language.py --quick    takes seconds: a test that it runs, without meaningful numbers

Times are CPU milliseconds, on one torch thread, of drawing a batch from a token file and of a whole training step, at
the sizes of experiment `regular-gpt/table-3`. The file consists of random tokens, because the time does not depend on
the tokens. Before anything is timed, the file is read back and compared. Drawing should take at most 2 % of a step.
"""

import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from speed_page import cpu_times, environment, parse_options, write_results

from lengthwise.randomness import generator_for
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.runs.spec import RunSpec, make_spec, merge
from lengthwise.studies.chi2023.experiments.language import COLUMNS, STEPS
from lengthwise.studies.text import VOCAB_SIZE, training
from lengthwise.text.corpus import FOLDER
from lengthwise.text.token_file import in_memory, read_tokens, write_tokens
from lengthwise.text.tokenizer import BYTE_NAMES, Tokenizer
from lengthwise.training.loop import TrainingState, training_steps

AIM = 0.02
"""The fraction of a training step that drawing its batch may take."""

KEY = "0" * 16


class Cost(NamedTuple):
    """The CPU milliseconds of a batch and of a step, and the CPU hours of all steps of a run."""

    model: str
    parameters: int
    batch: float
    step: float
    hours: float

    @property
    def share(self) -> float:
        """The share of a step that drawing its batch takes."""
        return self.batch / self.step


def write_file(folder: Path, count: int, vocab_size: int = VOCAB_SIZE) -> None:
    """Write a corpus of random tokens, read it back and compare."""
    tokens = np.random.default_rng(0).integers(vocab_size, size=count, dtype=np.uint32)
    splits = {"train": tokens, "valid": tokens[:4_096], "test": tokens[:4_096]}
    names = (*BYTE_NAMES, *(f"t{index}" for index in range(vocab_size - 1 - len(BYTE_NAMES))))
    write_tokens(folder / KEY, in_memory(splits, Tokenizer(names), source=KEY))
    assert np.array_equal(read_tokens(folder / KEY).split("train"), tokens)


def cpu_milliseconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median CPU milliseconds of a call."""
    return 1e3 * statistics.median(cpu_times(work, repeats, warm_ups=0))


def measured(name: str, spec: RunSpec, *, steps: int, batches: int) -> Cost:
    """Measure the costs of a run from a few of its steps."""
    recipe = spec.recipe
    generator = generator_for(0, "benchmark")
    batch = cpu_milliseconds(lambda: spec.task.sample(recipe.batch_size, recipe.max_length, generator), repeats=batches)
    state = TrainingState(spec.make_model(), recipe, spec.task)
    records = training_steps(state, spec.task, recipe, seed=0)
    next(records)
    step = cpu_milliseconds(lambda: next(records), repeats=steps)
    parameters = sum(parameter.numel() for parameter in state.model.parameters())
    return Cost(name, parameters, batch, step, step * recipe.steps / 3.6e6)


def table(costs: list[Cost]) -> str:
    """Return the costs as a table."""
    header = ("model", "parameters", "batch, CPU ms", "step, CPU ms", "share", "a run's steps, CPU h")
    lines = [
        (c.model, f"{c.parameters:,}", f"{c.batch:.3f}", f"{c.step:,.0f}", f"{c.share:.3%}", f"{c.hours:.2f}")
        for c in costs
    ]
    return markdown_table(header, lines)


def main() -> None:
    options = parse_options(__doc__ or "")
    torch.set_num_threads(1)
    changes = {"model": {"d_model": 24}, "train": {"batch_size": 2}} if options.quick else {}
    columns = [column for column in COLUMNS if "max_levels" not in column.settings]
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        write_file(Path(folder), 1 << (16 if options.quick else 22))
        costs = []
        for column in columns[-1:] if options.quick else columns:
            settings = {"task": {"corpus": KEY}, "model": column.settings, "train": training(STEPS)}
            spec = make_spec("text", column.model, merge(settings, changes))
            count = 1 if options.quick else 3
            costs.append(measured(column.name, spec, steps=count, batches=20 * count))
    print(table(costs))
    highest = max(cost.share for cost in costs)
    print(f"drawing a batch takes at most {highest:.3%} of a step (aim: {AIM:.0%})")
    print(f"all steps of all runs: {sum(cost.hours for cost in costs):.1f} CPU hours")
    if options.save:
        write_results("language", environment(), {"costs": [cost._asdict() for cost in costs]})


if __name__ == "__main__":
    main()
