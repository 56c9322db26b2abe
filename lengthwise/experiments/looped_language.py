"""Language models that loop one wide layer, with timestep encoding and without, as in Table 3 of Xu and Sato (2024)."""

from collections.abc import Iterator

from lengthwise.experiments.base import EXPERIMENTS, Experiment, Scale
from lengthwise.experiments.text import (
    AS_GPT2,
    TRAINED_AT,
    VOCAB_SIZE,
    TextColumn,
    about_text,
    chunk_plan,
    given_text,
    lacking,
    text_cells,
)
from lengthwise.runs.spec import Settings

STEPS = 1_000
LOOPS = (1, 3, 6)
KINDS = {"timestep": "timestep", "plain": "code"}
"""Variants of the looped transformer by what the columns call them."""

WIDE: Settings = {"d_model": 448, "num_heads": 7, "gates": "closed"}
"""One layer about as large as the transformer's six."""

TRANSFORMER: Settings = {"d_model": 192, "num_heads": 6, "num_layers": 6}

PUBLISHED = {
    "transformer": "19.6 (train 5.11)",
    "1 loop, plain": "33.11 (train 6.65)",
    "3 loops, plain": "27.93 (train 5.64)",
    "6 loops, plain": "28.16 (train 5.61)",
    "1 loop, timestep": "31.18 (train 6.29)",
    "3 loops, timestep": "23.45 (train 5.31)",
    "6 loops, timestep": "22.42 (train 5.05)",
}
"""Test perplexities as printed."""


@EXPERIMENTS.register("looped/table-3")
def looped_table_3(scale: Scale = "small") -> Experiment:
    """Perplexity of one wide layer, looped 1, 3 and 6 times, with timestep encoding and without, on a given text."""
    task = given_text(scale)
    return Experiment(
        title="Looped transformers: Table 3 of Xu and Sato, language, at a small size",
        about=(
            "One wide layer, looped 1, 3 and 6 times, with timestep encoding and without, and a transformer of six "
            f"layers with about as many parameters; trained on windows of {TRAINED_AT} tokens, measured by the "
            "perplexity of the last tokens of as long chunks."
        ),
        notes=(
            f"The text: {about_text(task)}",
            f"Ours: D=448 (the transformer: 192), byte-level BPE of {VOCAB_SIZE:,} tokens, {STEPS:,} steps of 16 "
            "windows, one seed, final weights. The paper: D=2,048 (768, 12 layers), 1,024 tokens, 600,000 steps of "
            "491,520 tokens of WikiText-103, the best checkpoint. Perplexities of different texts do not compare; "
            "what compares is the order of the columns.",
            "A loop costs a layer of D=448, about 0.9 of the transformer's six: 6 loops take more than five times its "
            "time.",
        ),
        cells=text_cells(scale, task, list(_columns()), steps=STEPS),
        plan=chunk_plan(scale, (TRAINED_AT,)),
        scored="perplexity",
        compared=tuple((_name(loops, "timestep"), _name(loops, "plain")) for loops in LOOPS),
        lacks=lacking(scale),
    )


def _name(loops: int, kind: str) -> str:
    return f"{loops} loop{'s' * (loops > 1)}, {kind}"


def _columns() -> Iterator[TextColumn]:
    learned: Settings = {**AS_GPT2, "positions": "learned", "learned_positions": TRAINED_AT}
    yield TextColumn("transformer", "transformer", {**learned, **TRANSFORMER}, PUBLISHED["transformer"])
    for kind, variant in KINDS.items():
        for loops in LOOPS:
            settings = {**learned, **WIDE, "num_loops": loops, "variant": variant}
            name = _name(loops, kind)
            yield TextColumn(name, "looped-transformer", settings, PUBLISHED[name])
