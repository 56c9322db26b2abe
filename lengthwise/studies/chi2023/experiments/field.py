"""Figure 4b of Chi et al. (2023): how far back the gradients of language models reach."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lengthwise.analysis.text_field import TextField, text_fields
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale
from lengthwise.models.regular_gpt_lm import RegularGPTLM
from lengthwise.runs.folder import load_run
from lengthwise.studies.chi2023.experiments.language import papers_needs, table_3
from lengthwise.studies.text import TRAINED_AT
from lengthwise.text.language import LanguageTask

COLUMNS = ("32/6", "16/3, at most 2 levels", "128/12", "128/6", "ALiBi", "T5")
"""The columns of `regular-gpt/table-3` to analyze.

C/K is RegularGPT with chunk size C and K layers for each level. The columns are 128/12 (at scale `small` its
counterpart 32/6), another RegularGPT, and two transformers.
"""

LENGTHS: dict[Scale, tuple[int, ...]] = {
    "paper": (512, 2_048, 8_192),
    "small": (TRAINED_AT, 512, 2_048),
    "smoke": (16, 64),
}
NUM_CHUNKS: dict[Scale, int] = {"paper": 64, "small": 64, "smoke": 4}


_HEADLINE = (
    "Language models of this size do not show whether RegularGPT learns to look only at a local window of tokens.\n"
    "For the transformer with ALiBi and the nets of RegularGPT on this page, half of the gradient of the predicted "
    "token lies in the newest few tokens, at all lengths of the text. The reach of the other half grows with this "
    "length. The growth ends only for net *16/3, at most 2 levels* (chunk size 16, 3 layers for each level): two "
    "levels of its tree reach at most 766 tokens."
)


class NetField(NamedTuple):
    """The receptive fields of a trained net, by chunk length."""

    column: str
    fields: list[TextField]


@EXPERIMENTS.register("regular-gpt/receptive-field")
def receptive_field(scale: Scale = "small") -> Experiment:
    """Figure 4b: measure by gradients how far back language models look, also beyond their training length."""
    experiment = table_3(scale)
    cells = [cell for cell in experiment.cells if cell.column in COLUMNS]
    if scale == "smoke":
        cells = [cells[0], cells[-1]]
    return experiment._replace(
        title="Receptive fields of language models: Figure 4b",
        headline=_HEADLINE if experiment.headline else "",
        about=(
            "Chi et al. (2023) report that RegularGPT, trained on language, learns to look at a local window, like "
            "transformers with a bias toward nearby tokens (Figure 4b).\n"
            "This page shows how far back the gradient of the predicted token reaches. The nets come from "
            f"`regular-gpt/table-3` and were trained on windows of {LENGTHS[scale][0]} tokens."
        ),
        notes=(
            *experiment.notes[:4],
            f"In each of {NUM_CHUNKS[scale]:,} chunks of the test split, the gradient of the log-odds of the last "
            "token is computed with respect to the embeddings of the earlier tokens. Chunks of all lengths end at "
            "the same tokens. A net looks at a local window if the gradient reaches equally far back in chunks of "
            "all lengths.",
            "Whatever the weights of a net, two levels reach at most 1 + K (C^2 - 1) tokens: 766 with 16/3 and 6,139 "
            "with 32/6. *Held at 2 levels*: the net is measured with at most 2 levels. Training windows never need "
            "more levels.",
            "A gradient measures how far small changes reach, but not what a net would lose without a token.",
        ),
        cells=cells,
        scoring=experiment.scoring._replace(compared=()),
        study=lambda root: fields(root, cells, scale),
        requires=experiment.requires._replace(
            needs=papers_needs(3 * len(cells)) if scale == "paper" else "", weights=True
        ),
    )


def fields(root: Path, cells: Sequence[Cell], scale: Scale) -> list[NetField]:
    """Return the receptive fields of the nets in a folder.

    A RegularGPT that has more levels on the longest chunks than on the shortest is measured twice: with all levels, and
    with only as many levels as on the shortest chunks.
    """
    lengths, nets = LENGTHS[scale], []
    for cell in cells:
        run = load_run(root / cell.specs[0].id)
        task, models = run.spec.task, {cell.column: run.model}
        assert isinstance(task, LanguageTask)
        if isinstance(run.model, RegularGPTLM):
            levels = run.model.num_levels(lengths[0])
            if run.model.num_levels(lengths[-1]) > levels:
                models[f"{cell.column}, held at {levels} levels"] = run.model.with_max_levels(levels)
        for name, model in models.items():
            nets.append(NetField(name, text_fields(model, task, lengths, num_chunks=NUM_CHUNKS[scale])))
    return nets
