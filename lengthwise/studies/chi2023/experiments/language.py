"""Perplexity of RegularGPT and transformers beyond their training length: Table 3 of Chi et al. (2023)."""

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
    preset_cells,
    text_cells,
)

STEPS = 2_000
PAPER_LENGTHS = (512, 1_024, 2_048, 4_096, 8_192)


def _transformer(name: str, positions: str, published: str = "") -> TextColumn:
    """Return a column for a transformer with six layers as in GPT-2 and the position encoding `positions`."""
    settings = {**AS_GPT2, "d_model": 192, "num_heads": 6, "num_layers": 6, "positions": positions}
    return TextColumn(name, "transformer", settings, published)


def _regular_gpt(
    chunk_size: int, thickness: int, published: str = "", levels: int | None = None, *, as_published: bool = False
) -> TextColumn:
    """Return a column for RegularGPT.

    The tree has at most `levels` levels, if this limit is given. If `as_published` is True, all positions have as many
    levels as the whole input needs.
    """
    changes: Settings = {} if levels is None else {"max_levels": levels}
    changes |= {"depth": "input"} if as_published else {}
    settings = {"d_model": 192, "num_heads": 6, "chunk_size": chunk_size, "thickness": thickness, **changes}
    note = f", at most {levels} levels" if levels else ", depth of the input" if as_published else ""
    return TextColumn(f"{chunk_size}/{thickness}{note}", "regular-gpt-lm", settings, published)


PUBLISHED = {
    "KERPLE": "24.71 / 24.42 / 24.21 / 24.53 / 24.74",
    "T5": "24.50 / 24.38 / 25.01 / 28.91 / 39.08",
    "ALiBi": "24.53 / 24.90 / 25.08 / 25.08 / 25.08",
    "32/6": "32.06 / 32.03 / 791.74 / 812.00 / 818.49",
    "64/6": "30.17 / 30.30 / 30.56 / 30.80 / 1175.91",
    "128/6": "28.80 / 28.94 / 29.14 / 29.25 / 29.41",
    "128/12": "26.37 / 26.91 / 27.08 / 27.28 / 27.39",
    "256/6": "27.90 / 34.38 / 34.85 / 35.11 / 35.42",
}
"""The paper's perplexities at 512, 1,024, ..., 8,192 tokens. C/K: RegularGPT with chunk size C, K layers per level."""

ENCODINGS = {"KERPLE": "kerple-log", "T5": "t5", "ALiBi": "alibi"}


def _like(name: str) -> str:
    """Return the name C/K of the paper's net with its entry, because our column has another chunk size or thickness."""
    return f"{name}: {PUBLISHED[name]}"


COLUMNS = (
    *(_transformer(name, positions, PUBLISHED[name]) for name, positions in ENCODINGS.items()),
    _transformer("rotary", "rotary"),
    _regular_gpt(16, 3, _like("32/6")),
    _regular_gpt(16, 3, levels=2),
    _regular_gpt(16, 3, _like("32/6"), as_published=True),
    _regular_gpt(32, 3, _like("64/6")),
    _regular_gpt(32, 3, _like("64/6"), as_published=True),
    _regular_gpt(32, 6, _like("128/12")),
    _regular_gpt(64, 3, _like("256/6")),
)

COMPARED = (
    *(("T5", "ALiBi"), ("KERPLE", "ALiBi"), ("rotary", "ALiBi"), ("32/6", "ALiBi")),
    *(("16/3", "16/3, at most 2 levels"), ("32/6", "32/3"), ("64/3", "32/3")),
    *((f"{name}, depth of the input", name) for name in ("16/3", "32/3")),
)


_HEADLINE = (
    "The perplexity of RegularGPT as a language model rises at the first length at which its tree has a third level, "
    "which training never uses.\n"
    "This length is 512 tokens with chunk size C=16, and 2,048 tokens with C=32. Net C/K has chunk size C, and K "
    "layers for each level. From 256 to 512 tokens, the perplexity of net 16/3 rises from {cells[*][16/3][256]} to "
    "{cells[*][16/3][512]}. If net 16/3 has at most two levels, its perplexity changes from "
    "{cells[*][16/3, at most 2 levels][256]} to {cells[*][16/3, at most 2 levels][512]}. From 1,024 to 2,048 tokens, "
    "the perplexity of net 32/6 rises from {cells[*][32/6][1,024]} to {cells[*][32/6][2,048]}. In the paper, all "
    "positions have as many levels as the whole input needs. With this depth, the perplexity of net 16/3 rises from "
    "{cells[*][16/3, depth of the input][256]} to {cells[*][16/3, depth of the input][512]} between 256 and 512 "
    "tokens. With this depth, the perplexity of net 32/3 rises from {cells[*][32/3, depth of the input][1,024]} to "
    "{cells[*][32/3, depth of the input][2,048]} between 1,024 and 2,048 tokens. At the training length, the "
    "perplexities of nets 32/6 and 32/3 are {cells[*][32/6][128]} and {cells[*][32/3][128]}.\n"
    "From the training length to 16 times this length, the perplexity of a transformer with ALiBi's positions "
    "changes from {cells[*][ALiBi][128]} to {cells[*][ALiBi][2,048]}. With T5's positions, the perplexity changes "
    "from {cells[*][T5][128]} to {cells[*][T5][2,048]}, and with KERPLE's from {cells[*][KERPLE][128]} to "
    "{cells[*][KERPLE][2,048]}."
)


@EXPERIMENTS.register("regular-gpt/table-3")
def table_3(scale: Scale = "small") -> Experiment:
    """Measure the perplexity of language models up to 16 times their training length, on a given text."""
    if scale == "paper":
        return _at_the_papers_size()
    task, plan = given_text(scale), chunk_plan(scale)
    return Experiment(
        title="RegularGPT: Table 3 of Chi et al., language, at a small size",
        headline=headline_of(task, _HEADLINE),
        about=(
            f"The language models have 1.7 to 3.1 million parameters. They are trained for {STEPS:,} steps on windows "
            f"of {TRAINED_AT} tokens, and measured on chunks of the lengths in the head of the table."
        ),
        notes=(
            f"Perplexities are for the last tokens of {plan.num_chunks:,} chunks of up to {max(plan.chunk_lengths):,} "
            "tokens. *C/K* is RegularGPT with chunk size C and thickness K, the number of layers for each level of "
            "its tree. The other nets are transformers with six layers and the position encoding in their name.",
            f"The text: {about_text(task)}",
            f"Our nets: width 192, 6 heads, byte-level BPE with {VOCAB_SIZE:,} tokens, {STEPS:,} steps of 16 windows, "
            "one seed. The paper's nets: width 768, 12 heads, windows of 512 tokens, 50,000 steps of 32 windows of "
            "OpenWebText2, three seeds. Perplexities of different texts and tokenizers cannot be compared, but their "
            "changes with the length can.",
            "*paper*: the paper's perplexities at 512, 1,024, 2,048, 4,096 and 8,192 tokens, which are 1 to 16 times "
            "its training length. If the paper's C and K differ from ours, they are printed before the numbers.",
            "Relative to the training length, the levels of our trees cover about the same lengths as in the paper. "
            "With the paper's C=32 and our C=16, two levels cover twice the training length. With the paper's C=64 "
            "and our C=32, two levels cover 8 times the training length. With the paper's C=256 and our C=64, a "
            "training string has two chunks. The paper's 128/12 needs no third level at any measured length, and our "
            "32/6 needs one at 2,048.",
            "The first length with a third level is 512 for C=16 and 2,048 for C=32; C=64 has no such length. *At "
            "most 2 levels* leaves the third level out.",
            "*Depth of the input*, the paper's depth: all positions are answered after the number of levels that the "
            "whole input needs, which is two in training. In the other nets of RegularGPT, each position is answered "
            "after as many levels as the input up to this position needs. So in training, the first C positions are "
            "answered after one level, and the others after two.",
            "Weight decay applies to all parameters, including the norms and biases that nanoGPT leaves out.",
        ),
        cells=text_cells(scale, task, COLUMNS, steps=STEPS),
        plan=plan,
        scoring=Scoring(measure="perplexity", compared=COMPARED),
        requires=Requirements(lacks=lacking(scale)),
    )


def papers_needs(num_nets: int) -> str:
    """Return a text about the cost of training this number of nets of the paper's size."""
    return (
        f"This trains {num_nets} nets. Each net reads 0.82 billion tokens, in about 0.6 x 10^18 operations (K=12: 1.0 "
        "x 10^18). This takes months on a CPU core, or one to two hours on a GPU such as the H200 with bfloat16. "
        "Memory must hold all numbers of a training step; its logits alone are 0.8 billion numbers. The nets need a "
        "text of a few GB (the paper: OpenWebText2)."
    )


def _at_the_papers_size() -> Experiment:
    """Return the experiment with the paper's eight nets, three seeds each."""
    task, plan = given_text("paper"), chunk_plan("paper", PAPER_LENGTHS)
    columns = [TextColumn(name, "transformer", {"positions": ENCODINGS[name]}, PUBLISHED[name]) for name in ENCODINGS]
    for name in list(PUBLISHED)[len(ENCODINGS) :]:
        chunk_size, thickness = map(int, name.split("/"))
        sizes: Settings = {"chunk_size": chunk_size, "thickness": thickness}
        columns.append(TextColumn(name, "regular-gpt-lm", sizes, PUBLISHED[name]))
    return Experiment(
        title="RegularGPT: Table 3 of Chi et al., language",
        about=(
            "Language models with 81 or 123 million parameters are trained on windows of 512 tokens, and measured on "
            "longer chunks."
        ),
        notes=(
            f"Perplexities are for the last tokens of {plan.num_chunks:,} chunks of up to {max(PAPER_LENGTHS):,} "
            "tokens. *C/K* is RegularGPT with chunk size C and thickness K. The other columns are transformers with "
            "twelve layers.",
            f"The text: {about_text(task)}",
            "Preset `chi2023-language`: width 768, 12 heads, 50,000 steps of 32 windows, three seeds. Settings that "
            "the paper does not state are nanoGPT's. The byte-level BPE has as many tokens as GPT-2's, but is learned "
            "from the given text. Perplexities can be compared with the paper's only on its text, OpenWebText2, at "
            "the same lengths.",
            "The first length with a third level, which training never has, is 2,048 for C=32 and 8,192 for C=64.",
            "Weight decay applies to all parameters, including the norms and biases that nanoGPT leaves out.",
        ),
        cells=preset_cells(task, columns, "chi2023-language", seeds=(0, 1, 2)),
        plan=plan,
        scoring=Scoring(
            measure="perplexity",
            compared=(
                *(("T5", "ALiBi"), ("KERPLE", "ALiBi"), ("128/12", "ALiBi")),
                *(("128/12", "128/6"), ("256/6", "128/6")),
            ),
        ),
        requires=Requirements(needs=papers_needs(3 * len(columns)), lacks=lacking("paper")),
    )
