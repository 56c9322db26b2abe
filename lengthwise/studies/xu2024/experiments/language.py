"""Language models that loop one wide layer, with or without timestep encoding: Table 3 of Xu and Sato (2024)."""

from collections.abc import Iterator, Mapping

from lengthwise.display import counted
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

STEPS = 1_000
LOOPS = (1, 3, 6)
KINDS = {"timestep": "timestep", "plain": "code"}
"""The looped transformer's variant in each kind of column. At scale `paper`, the variant's name ends in `-language`."""

WIDE: Settings = {"d_model": 448, "num_heads": 7, "gates": "closed"}
"""Settings of a looped layer with about as many parameters as the six layers of the transformer."""

_LEARNED: Settings = {**AS_GPT2, "positions": "learned", "learned_positions": TRAINED_AT}

_SMALL: Mapping[str, Settings] = {
    "transformer": {**_LEARNED, "d_model": 192, "num_heads": 6, "num_layers": 6},
    "looped-transformer": {**_LEARNED, **WIDE},
}
"""The settings of both models at scale `small`."""

PUBLISHED = {
    "transformer": "19.6 (train 5.11)",
    "1 loop, plain": "33.11 (train 6.65)",
    "3 loops, plain": "27.93 (train 5.64)",
    "6 loops, plain": "28.16 (train 5.61)",
    "1 loop, timestep": "31.18 (train 6.29)",
    "3 loops, timestep": "23.45 (train 5.31)",
    "6 loops, timestep": "22.42 (train 5.05)",
}
"""The paper's test perplexities as printed."""


_HEADLINE = (
    "Language models that loop one wide layer 1, 3 and 6 times have perplexities {cells[*][1 loop, timestep][128]}, "
    "{cells[*][3 loops, timestep][128]} and {cells[*][6 loops, timestep][128]} with timestep encoding, and "
    "{cells[*][1 loop, plain][128]}, {cells[*][3 loops, plain][128]} and {cells[*][6 loops, plain][128]} without it.\n"
    "A transformer with six layers has perplexity {cells[*][transformer][128]}. The looped layers differ slightly "
    "from the layers of Xu and Sato.\n"
    "The nets are trained for only 1,000 steps. So the numbers probably show how soon nets begin to learn, rather "
    "than how well they can learn."
)


@EXPERIMENTS.register("looped/table-3")
def looped_table_3(scale: Scale = "small") -> Experiment:
    """Measure the perplexity of one wide layer, looped 1, 3 and 6 times, with and without timestep encoding."""
    if scale == "paper":
        return _at_the_papers_size()
    task = given_text(scale)
    return Experiment(
        title="Looped transformers: Table 3 of Xu and Sato, language, at a small size",
        headline=headline_of(task, _HEADLINE),
        about=(
            "With timestep encoding (*timestep*), the gains and gates of the looped layer are functions of the "
            "loop's number. *Plain* nets have no such gains and gates."
        ),
        notes=(
            "The transformer has 3.1 million parameters. A looped net has 4.5 million with timestep encoding, and 3.4 "
            f"million without. Nets are trained on windows of {TRAINED_AT} tokens, and scored by the perplexity of the "
            "last tokens of chunks of the same length.",
            f"The text: {about_text(task)}",
            f"Our nets: width 448 (transformer: 192), byte-level BPE with {VOCAB_SIZE:,} tokens, {STEPS:,} steps of "
            "16 windows, one seed, final weights. The paper's nets: width 2,048 (transformer: 768, with 12 layers), "
            "windows of 1,024 tokens, 600,000 steps of 491,520 tokens of WikiText-103, the best checkpoint. "
            "Perplexities of different texts cannot be compared, but the order of the nets can.",
            "The looped nets do not have the published layers, and *timestep* and *plain* differ in more than the "
            "timestep encoding. *Timestep* has SiLU and norms without gains; *plain* has the tanh GELU and norms with "
            "gains. In the published code for language, both nets have the exact GELU and norms without gains, so "
            "they differ only in the gains and gates of the encoding. Variants `timestep-language` and "
            "`code-language` have these published layers. Scale `paper` uses these variants, but no run on this page "
            "does. As in the published code, the gates of *timestep* are closed at the start of training, so a loop "
            "of *timestep* does nothing at first.",
            "A loop runs a layer of width 448, which takes about 0.9 times as many multiplications as the "
            "transformer's six layers. So 6 loops take 5.4 times as many multiplications as the transformer. On a "
            "CPU, their time is longer by about the same factor; on a GPU, it is hardly longer.",
        ),
        cells=text_cells(scale, task, list(_columns(_SMALL)), steps=STEPS),
        plan=chunk_plan(scale, (TRAINED_AT,)),
        scoring=Scoring(measure="perplexity", compared=COMPARED),
        requires=Requirements(lacks=lacking(scale)),
    )


def _at_the_papers_size() -> Experiment:
    """Return the experiment with the paper's seven nets, each with one seed."""
    task = given_text("paper")
    return Experiment(
        title="Looped transformers: Table 3 of Xu and Sato, language",
        about=(
            "One layer of width 2,048 is looped 1, 3 and 6 times, with and without timestep encoding. A transformer "
            "with twelve layers of width 768 is trained for comparison."
        ),
        notes=(
            "Nets are trained on windows of 1,024 tokens and measured on chunks of the same length.",
            f"The text: {about_text(task)}",
            "Preset `xu2024-language`: 600,000 steps of 24 windows, one seed, final weights. The paper has 20 times "
            "as many windows a step, from WikiText-103, with GPT-2's tokens, and reports the best checkpoint. Our "
            "tokenizer is byte-level BPE with the same number of tokens, learned from the given text. Only "
            "perplexities of whole chunks of the paper's text can be compared with the paper's perplexities.",
        ),
        cells=preset_cells(task, list(_columns({}, "-language")), "xu2024-language", seeds=(0,)),
        plan=chunk_plan("paper", (1_024,)),
        scoring=Scoring(measure="perplexity", compared=COMPARED),
        requires=Requirements(
            needs="This trains 7 nets with 124 to 177 million parameters. Each net reads 15 billion tokens, in about "
            "1.1 x 10^19 operations (6 loops: 3.6 x 10^19). This takes days on a GPU with bfloat16, whose memory has "
            "to hold the 1.2 billion logits of a step. The nets need a text such as WikiText-103.",
            lacks=lacking("paper"),
        ),
    )


def _name(loops: int, kind: str) -> str:
    return f"{counted(loops, 'loop')}, {kind}"


def _columns(sizes: Mapping[str, Settings], ending: str = "") -> Iterator[TextColumn]:
    """Yield the columns of the table.

    `sizes` contains the settings of each model. `ending` is added to the names of variants.
    """
    yield TextColumn("transformer", "transformer", sizes.get("transformer", {}), PUBLISHED["transformer"])
    for kind, variant in KINDS.items():
        for loops in LOOPS:
            settings = {**sizes.get("looped-transformer", {}), "num_loops": loops, "variant": f"{variant}{ending}"}
            name = _name(loops, kind)
            yield TextColumn(name, "looped-transformer", settings, PUBLISHED[name])


COMPARED = tuple((_name(loops, "timestep"), _name(loops, "plain")) for loops in LOOPS)
