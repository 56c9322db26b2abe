"""Language models with block-diagonal recurrences: the limitation (b) that Fan et al. (2024) name."""

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
from lengthwise.runs.spec import RunSpec, Settings

STEPS = 1_000

COLUMNS: dict[str, tuple[str, Settings]] = {
    "block-diagonal, b=8": ("block-linear-rnn", {"d_model": 192, "block_dim": 8, "columns": "clamped"}),
    "block-diagonal, b=2": ("block-linear-rnn", {"d_model": 192, "block_dim": 2, "columns": "clamped"}),
    "diagonal": ("diagonal-linear-rnn", {"d_model": 192, "transitions": "input-dependent"}),
    "LSTM": ("lstm", {"d_model": 384}),
    "transformer": ("transformer", {**AS_GPT2, "d_model": 192, "num_heads": 6, "num_layers": 3, "positions": "alibi"}),
}


@EXPERIMENTS.register("linear-rnn/language")
def language(scale: Scale = "small") -> Experiment:
    """Perplexity of block-diagonal recurrences next to diagonal ones, an LSTM and a transformer, on a given text."""
    task = given_text(scale)
    fields = task.model_dump(mode="json")
    lengths, num_chunks = ((16, 64), 4) if scale == "smoke" else (LENGTHS, 1_000)
    return Experiment(
        title="Linear RNNs as language models",
        about=(
            "Fan et al. (2024) leave open what block-diagonal input-dependent recurrences do on natural language "
            f"(limitation b). One layer each, trained on windows of {TRAINED_AT} tokens, measured on {num_chunks:,} "
            f"chunks of up to {max(lengths):,} by the perplexity of the last tokens."
        ),
        notes=(
            f"The text: {about_text(task)}",
            f"Byte-level BPE of {VOCAB_SIZE:,} tokens, {STEPS:,} steps of 16 windows, one seed, final weights, the "
            "same recipe for all. Sizes are alike in width, not in parameters.",
            "The paper has no numbers for this.",
        ),
        cells=[
            Cell(f"trained at {TRAINED_AT}", name, _specs(scale, model, settings, fields))
            for name, (model, settings) in COLUMNS.items()
        ],
        plan=EvaluationPlan(chunk_lengths=lengths, num_chunks=num_chunks),
        scored="perplexity",
        compared=(("block-diagonal, b=8", "diagonal"), ("block-diagonal, b=8", "LSTM")),
        lacks=lacking(scale),
    )


def _specs(scale: Scale, model: str, settings: Settings, fields: Settings) -> tuple[RunSpec, ...]:
    train = training(STEPS)
    if scale == "smoke":
        narrow: Settings = {"num_heads": 2, "num_layers": 1} if model == "transformer" else {}
        settings, train = {**settings, "d_model": 16, **narrow}, {}
    return ScaledSpecs(scale, seeds=(0,), model=model)("text", {"task": fields, "model": settings, "train": train})
