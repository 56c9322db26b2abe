"""Language models with block-diagonal recurrences: limitation (b) of Fan et al. (2024)."""

from lengthwise.experiment import EXPERIMENTS, Experiment, Requirements, Scale, Scoring
from lengthwise.presets.language import AS_GPT2
from lengthwise.runs.spec import Settings
from lengthwise.studies.text import (
    TRAINED_AT,
    VOCAB_SIZE,
    TextColumn,
    about_text,
    chunk_plan,
    given_text,
    headline_of,
    lacking,
    text_cells,
)

STEPS = 1_000

_BLOCKS: Settings = {"d_model": 192, "columns": "clamped"}
_TRANSFORMER: Settings = {**AS_GPT2, "d_model": 192, "num_heads": 6, "num_layers": 3, "positions": "alibi"}

COLUMNS = (
    TextColumn("block-diagonal, b=8", "block-linear-rnn", {**_BLOCKS, "block_dim": 8}),
    TextColumn("block-diagonal, b=2", "block-linear-rnn", {**_BLOCKS, "block_dim": 2}),
    TextColumn("diagonal", "diagonal-linear-rnn", {"d_model": 192, "transitions": "input-dependent"}),
    TextColumn("LSTM", "lstm", {"d_model": 384}),
    TextColumn("transformer", "transformer", _TRANSFORMER),
)


_HEADLINE = (
    "Trained on novels, a linear RNN has perplexity {cells[*][block-diagonal, b=8][128]} at the training length if its "
    "transitions have 8 x 8 blocks, and {cells[*][block-diagonal, b=2][128]} if they have 2 x 2 blocks.\n"
    "A diagonal linear RNN, which has fewer parameters, has perplexity {cells[*][diagonal][128]}. An LSTM of twice "
    "the width has {cells[*][LSTM][128]}, and a transformer has {cells[*][transformer][128]}.\n"
    "At 16 times the training length, the perplexities are {cells[*][block-diagonal, b=8][2,048]} (8 x 8 blocks), "
    "{cells[*][block-diagonal, b=2][2,048]} (2 x 2 blocks), {cells[*][diagonal][2,048]} (diagonal) and "
    "{cells[*][LSTM][2,048]} (LSTM)."
)


@EXPERIMENTS.register("linear-rnn/language")
def language(scale: Scale = "small") -> Experiment:
    """Compare the perplexity of block-diagonal and diagonal recurrences, an LSTM and a transformer on a given text."""
    task, plan = given_text(scale), chunk_plan(scale)
    return Experiment(
        title="Linear RNNs as language models",
        headline=headline_of(task, _HEADLINE),
        about=(
            "Fan et al. (2024) leave open how well input-dependent recurrences with block-diagonal transitions model "
            "natural language (limitation b)."
        ),
        notes=(
            f"Recurrences with one layer and a transformer with three layers are trained on windows of {TRAINED_AT} "
            f"tokens. Nets are scored by the perplexity of the last tokens of {plan.num_chunks:,} chunks of up to "
            f"{max(plan.chunk_lengths):,} tokens.",
            f"The text: {about_text(task)}",
            f"The tokenizer is byte-level BPE with {VOCAB_SIZE:,} tokens. All nets have the same recipe: {STEPS:,} "
            "steps of 16 windows, one seed, final weights. The width is 192 (LSTM: 384), and the numbers of "
            "parameters differ (below). The diagonal recurrence and the LSTM have a residual connection around their "
            "layer; the block-diagonal recurrences do not. The layer of the block-diagonal recurrences is the layer "
            "of the published code of Fan et al., with the column norm of eq. (6) in their paper.",
            "Fan et al. have no numbers on language. They believe that their model is at least as good as earlier "
            "linear RNNs. This page compares it with only one earlier linear RNN, the diagonal recurrence.",
        ),
        cells=text_cells(scale, task, COLUMNS, steps=STEPS),
        plan=plan,
        scoring=Scoring(
            measure="perplexity",
            compared=tuple(
                (f"block-diagonal, b={size}", other) for size in (8, 2) for other in ("diagonal", "LSTM", "transformer")
            ),
        ),
        requires=Requirements(lacks=lacking(scale)),
    )
