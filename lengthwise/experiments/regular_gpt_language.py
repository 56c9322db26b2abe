"""Language modeling beyond the training length: RegularGPT and transformers, as in Table 3 of Chi et al. (2023)."""

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

STEPS = 2_000


def _transformer(name: str, positions: str, published: str = "") -> TextColumn:
    """Six of GPT-2's layers with this encoding."""
    settings = {**AS_GPT2, "d_model": 192, "num_heads": 6, "num_layers": 6, "positions": positions}
    return TextColumn(name, "transformer", settings, published)


def _regular_gpt(chunk_size: int, thickness: int, published: str = "", levels: int | None = None) -> TextColumn:
    """RegularGPT with this chunk size and thickness, and, if given, a limit of levels."""
    limit = {} if levels is None else {"max_levels": levels}
    settings = {"d_model": 192, "num_heads": 6, "chunk_size": chunk_size, "thickness": thickness, **limit}
    name = f"{chunk_size}/{thickness}" + (f", at most {levels} levels" if limit else "")
    return TextColumn(name, "regular-gpt-lm", settings, published)


COLUMNS = (
    _transformer("KERPLE", "kerple-log", "24.71 / 24.42 / 24.21 / 24.53 / 24.74"),
    _transformer("T5", "t5", "24.50 / 24.38 / 25.01 / 28.91 / 39.08"),
    _transformer("ALiBi", "alibi", "24.53 / 24.90 / 25.08 / 25.08 / 25.08"),
    _transformer("rotary", "rotary"),
    _regular_gpt(16, 3, "32/6: 32.06 / 32.03 / 791.74 / 812.00 / 818.49"),
    _regular_gpt(16, 3, levels=2),
    _regular_gpt(32, 3, "64/6: 30.17 / 30.30 / 30.56 / 30.80 / 1175.91"),
    _regular_gpt(32, 6, "128/12: 26.37 / 26.91 / 27.08 / 27.28 / 27.39"),
    _regular_gpt(64, 3, "256/6: 27.90 / 34.38 / 34.85 / 35.11 / 35.42"),
)
"""C/K: RegularGPT's chunk size and thickness. The paper's perplexities are at 512, 1,024, ..., 8,192 tokens."""

COMPARED = (
    *(("T5", "ALiBi"), ("KERPLE", "ALiBi"), ("rotary", "ALiBi"), ("32/6", "ALiBi")),
    *(("16/3", "16/3, at most 2 levels"), ("32/6", "32/3"), ("64/3", "32/3")),
)


@EXPERIMENTS.register("regular-gpt/table-3")
def table_3(scale: Scale = "small") -> Experiment:
    """Perplexity of language models up to 16 times their training length, on a text that is given."""
    task, plan = given_text(scale), chunk_plan(scale)
    return Experiment(
        title="RegularGPT: Table 3 of Chi et al., language, at a small size",
        about=(
            f"Language models of 1.7 to 3.1 million parameters, trained on windows of {TRAINED_AT} tokens and measured "
            f"on {plan.num_chunks:,} chunks of up to {max(plan.chunk_lengths):,}, by the perplexity of the last "
            "tokens. Columns C/K: RegularGPT with that chunk size and thickness; the others are transformers of six "
            "layers with that position encoding."
        ),
        notes=(
            f"The text: {about_text(task)}",
            f"Ours: D=192, 6 heads, byte-level BPE of {VOCAB_SIZE:,} tokens, {STEPS:,} steps of 16 "
            "windows, one seed. The paper: D=768, 12 heads, 512 tokens, 50,000 steps of 32 "
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
        cells=text_cells(scale, task, COLUMNS, steps=STEPS),
        plan=plan,
        scored="perplexity",
        compared=COMPARED,
        lacks=lacking(scale),
    )
