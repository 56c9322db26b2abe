"""The text on which language models of the experiments are trained, and the settings of their training."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import Cell, Scale, ScaledSpecs, with_seeds
from lengthwise.runs.spec import Settings, make_spec
from lengthwise.tasks.base import make_task
from lengthwise.text.task import Text

FOLDER = "LENGTHWISE_TEXT"
"""The environment variable with the folder of the text, which contains train.txt, valid.txt and test.txt."""

VOCAB_SIZE = 2_048
TRAINED_AT = 128
LENGTHS = (128, 256, 512, 1_024, 2_048)

GPT2_VOCAB_SIZE = 50_257
"""The number of tokens in the vocabulary at scale `paper`, for presets `chi2023-language` and `xu2024-language`."""

FIELDS = {"files": "train", "valid_files": "valid", "test_files": "test"}
"""The fields of task `text` that contain paths of files, and the split of each field."""

NOVELS = "04f2bccbd52a920a"
"""The hash of the text on which the nets of the stored pages of results were trained."""

_BOOKS = (
    " Training: War and Peace (Maude's translation), Middlemarch and Bleak House. Validation: Moby-Dick. Tests: David "
    "Copperfield. The books come from Project Gutenberg, without its headers and footers, and with blank lines "
    "collapsed."
)

_SMOKE: dict[str, Settings] = {
    "transformer": {"num_heads": 2, "num_layers": 1},
    "looped-transformer": {"num_heads": 2, "num_loops": 2},
    "regular-gpt-lm": {"num_heads": 2, "thickness": 1},
}
"""Sizes at scale `smoke`, by model name. The width is 16 for all models."""


class TextColumn(NamedTuple):
    """A column of a table of language models: its name, model and settings, and the paper's perplexity as printed."""

    name: str
    model: str
    settings: Settings
    published: str = ""


def training(steps: int) -> Settings:
    """Return a `train` section: AdamW with batches of 16 windows of the training length."""
    return {
        "steps": steps,
        "batch_size": 16,
        "optimizer": {"learning_rate": 1e-3, "warmup_steps": 100},
        "checkpoint_every": 100,
    }


def text_cells(scale: Scale, task: Text, columns: Sequence[TextColumn], *, steps: int) -> list[Cell]:
    """Return one cell for each column: a net trained on a text, with one seed. At scale `smoke` nets are tiny."""
    fields, cells = task.model_dump(mode="json"), []
    for column in columns:
        small: Settings = {"d_model": 16, **_SMOKE.get(column.model, {})} if scale == "smoke" else {}
        settings = {"task": fields, "model": {**column.settings, **small}, "train": training(steps)}
        specs = ScaledSpecs(scale, seeds=(0,), model=column.model)("text", settings)
        cells.append(Cell(f"trained at {TRAINED_AT}", column.name, specs, column.published))
    return cells


def preset_cells(task: Text, columns: Sequence[TextColumn], preset: str, seeds: Sequence[int]) -> list[Cell]:
    """Return one table cell for each column, with the runs of a model of the size that the paper uses.

    The preset determines the number of steps and the sizes. The settings of a column override the sizes of the preset.
    """
    fields, cells = task.model_dump(mode="json"), []
    for column in columns:
        settings: Settings = {"task": fields, "model": column.settings}
        specs = with_seeds(make_spec("text", column.model, settings, preset=preset), seeds)
        row = f"trained at {specs[0].recipe.max_length}"
        cells.append(Cell(row, column.name, specs, column.published))
    return cells


def chunk_plan(scale: Scale, lengths: tuple[int, ...] = LENGTHS) -> EvaluationPlan:
    """Return a plan that measures the perplexity on 1,000 chunks of each length, or on 4 short chunks at `smoke`."""
    return EvaluationPlan(
        chunk_lengths=(16, 64)[: len(lengths)] if scale == "smoke" else lengths,
        num_chunks=4 if scale == "smoke" else 1_000,
    )


def given_text(scale: Scale) -> Text:
    """Return the text in the folder that the environment variable `LENGTHWISE_TEXT` names.

    At scale `smoke`, or if the variable is not set, return the built-in text.

    Raises:
        ValueError: the folder does not contain train.txt, valid.txt and test.txt.
    """
    folder = None if scale == "smoke" else os.environ.get(FOLDER)
    if not folder:
        text = make_task("text")
    else:
        if missing := [name for name in FIELDS.values() if not (Path(folder) / f"{name}.txt").is_file()]:
            raise ValueError(
                f"{FOLDER}: expected a folder with train.txt, valid.txt and test.txt, got {folder} without "
                f"{missing[0]}.txt; give another folder"
            )
        files = {field: [Path(folder) / f"{split}.txt"] for field, split in FIELDS.items()}
        text = make_task("text", **files, vocab_size=GPT2_VOCAB_SIZE if scale == "paper" else VOCAB_SIZE)
    assert isinstance(text, Text)
    return text


def lacking(scale: Scale) -> str:
    """Return a message if the environment variable with the text's folder is required but not set, or else ""."""
    if scale == "smoke" or os.environ.get(FOLDER):
        return ""
    return (
        f"{FOLDER}: expected the folder of a text with train.txt, valid.txt and test.txt, got none; set this "
        "environment variable, or use scale smoke"
    )


def about_text(task: Text) -> str:
    """Return a description of a text: its sources, hashes and size."""
    sizes = ", ".join(f"{len(task.tokens(split)):,} {split}" for split in ("train", "valid", "test"))
    source = f"{', '.join(task.header.sources)} (hash of their contents: {task.header.source})"
    corpus = f". Hash of the contents together with the size of the vocabulary: {task.corpus}" if task.corpus else ""
    books = _BOOKS if task.header.source == NOVELS else ""
    return (
        f"{source}{corpus}. Tokens: {sizes}; {len(task.symbols):,} different tokens.{books} The environment variable "
        f"{FOLDER} contains the path of the text's folder. Chunks overlap and come from one test split. Intervals "
        "treat chunks as independent, and do not account for the choice of the text."
    )


def headline_of(task: Text, headline: str) -> str:
    """Return the headline if the task has the text of the recorded results (`NOVELS`), or else an empty string."""
    return headline if task.header.source == NOVELS else ""
