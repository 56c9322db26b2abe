"""Language modeling beyond the training length: RegularGPT and transformers, as in Table 3 of Chi et al. (2023)."""

from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiments.base import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs
from lengthwise.experiments.text import (
    AS_GPT2,
    LENGTHS,
    TRAINED_AT,
    VOCAB_SIZE,
    about_text,
    given_text,
    lacking,
    training,
)
from lengthwise.runs.spec import Settings

SIZES: Settings = {"d_model": 192, "num_heads": 6}
NUM_LAYERS = 6
TRAIN = training(2_000)


class Column(NamedTuple):
    """A column of the table: a model with its settings, and the paper's perplexities at 512, 1,024, ..., 8,192."""

    name: str
    model: str
    settings: Settings
    published: str = ""


def _transformer(positions: str) -> Settings:
    """GPT-2's layers with this encoding."""
    return {**AS_GPT2, "num_layers": NUM_LAYERS, "positions": positions}


COLUMNS = (
    Column("KERPLE", "transformer", _transformer("kerple-log"), "24.71 / 24.42 / 24.21 / 24.53 / 24.74"),
    Column("T5", "transformer", _transformer("t5"), "24.50 / 24.38 / 25.01 / 28.91 / 39.08"),
    Column("ALiBi", "transformer", _transformer("alibi"), "24.53 / 24.90 / 25.08 / 25.08 / 25.08"),
    Column("rotary", "transformer", _transformer("rotary")),
    Column(
        *("16/3", "regular-gpt-lm", {"chunk_size": 16, "thickness": 3}),
        published="32/6: 32.06 / 32.03 / 791.74 / 812.00 / 818.49",
    ),
    Column("16/3, at most 2 levels", "regular-gpt-lm", {"chunk_size": 16, "thickness": 3, "max_levels": 2}),
    Column(
        *("32/3", "regular-gpt-lm", {"chunk_size": 32, "thickness": 3}),
        published="64/6: 30.17 / 30.30 / 30.56 / 30.80 / 1175.91",
    ),
    Column(
        *("32/6", "regular-gpt-lm", {"chunk_size": 32, "thickness": 6}),
        published="128/12: 26.37 / 26.91 / 27.08 / 27.28 / 27.39",
    ),
    Column(
        *("64/3", "regular-gpt-lm", {"chunk_size": 64, "thickness": 3}),
        published="256/6: 27.90 / 34.38 / 34.85 / 35.11 / 35.42",
    ),
)
"""All that are trained: C/K of RegularGPT, chunk size and thickness."""

COMPARED = (
    *(("T5", "ALiBi"), ("KERPLE", "ALiBi"), ("rotary", "ALiBi"), ("32/6", "ALiBi")),
    *(("16/3", "16/3, at most 2 levels"), ("32/6", "32/3"), ("64/3", "32/3")),
)


@EXPERIMENTS.register("regular-gpt/table-3")
def table_3(scale: Scale = "small") -> Experiment:
    """Perplexity of language models up to 16 times their training length, on a text that is given."""
    task = given_text(scale)
    fields = task.model_dump(mode="json")
    cells = [_cell(column, scale, fields) for column in COLUMNS]
    lengths, num_chunks = ((16, 64), 4) if scale == "smoke" else (LENGTHS, 1_000)
    return Experiment(
        title="RegularGPT: Table 3 of Chi et al., language, at a small size",
        about=(
            f"Language models of 1.7 to 3.1 million parameters, trained on windows of {TRAINED_AT} tokens and measured "
            f"on {num_chunks:,} chunks of up to {max(lengths):,}, by the perplexity of the last tokens. Columns C/K: "
            "RegularGPT with that chunk size and thickness; the others are transformers of six layers with that "
            "position encoding."
        ),
        notes=(
            f"The text: {about_text(task)}",
            f"Ours: D=192, 6 heads, byte-level BPE of {VOCAB_SIZE:,} tokens, {TRAIN['steps']:,} steps of "
            f"{TRAIN['batch_size']} windows, one seed. The paper: D=768, 12 heads, 512 tokens, 50,000 steps of 32 "
            "windows of OpenWebText2, three seeds. Perplexities of different texts and tokenizers do not compare; what "
            "compares is how they change with the length.",
            "*paper*: its perplexities at 512, 1,024, 2,048, 4,096 and 8,192, which are 1 to 16 times its training "
            "length. Its C and K stand in front where they are others: 32 of 512 tokens reaches C^2 = 1,024 tokens "
            "with the two levels that training has, as our 16 of 128 does 256; 64 reaches 8 times the training length, "
            "as our 32; of 256, training sees two chunks, as of our 64.",
            "The first length with a third level, which training never has: 512 for C=16, 2,048 for C=32, none for "
            "C=64. *At most 2 levels* leaves it out.",
            "Weights decay in all parameters, norms and biases included, which nanoGPT leaves out.",
        ),
        cells=cells,
        plan=EvaluationPlan(chunk_lengths=lengths, num_chunks=num_chunks),
        scored="perplexity",
        compared=COMPARED,
        lacks=lacking(scale),
    )


def _thin(column: Column) -> Settings:
    """A third of the layers at most."""
    thickness = column.settings.get("thickness")
    return {"num_layers": 1} if thickness is None else {"thickness": thickness // 3}


def _cell(column: Column, scale: Scale, fields: Settings) -> Cell:
    """A run of one seed."""
    settings: Settings = {"task": fields, "model": {**SIZES, **column.settings}, "train": TRAIN}
    specs = ScaledSpecs(scale, seeds=(0,), model=column.model)
    if scale == "smoke":
        small = {"d_model": 12, **_thin(column)}
        settings = {"task": fields, "model": {**settings["model"], **small}}
    return Cell(f"trained at {TRAINED_AT}", column.name, specs("text", settings), column.published)
