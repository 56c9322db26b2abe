"""Three variants of RegularGPT's layer, with one or two layers for each level (K), by the protocol of Table 1."""

from collections.abc import Mapping

from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, Scoring
from lengthwise.runs.spec import Settings
from lengthwise.studies.chi2023.experiments.tables import plan_of_lengths, specs_at_rates
from lengthwise.studies.languages import LANGUAGES

ROWS = ("Even Pairs", "Parity", "Cycle Navigation")

LAYERS: Mapping[str, str] = {"code": "the code's", "paper": "GPT-2's", "merge": "ours"}
"""Variants of `regular-gpt`, with the origin of their layers."""


@EXPERIMENTS.register("regular-gpt/variants")
def variants(scale: Scale = "small") -> Experiment:
    """Compare three kinds of layers of RegularGPT: the published code's (one or two a level), GPT-2's, and ours."""
    return Experiment(
        title="Chi et al. (2023): layers and thickness of RegularGPT",
        headline=(
            "RegularGPT is trained with three kinds of layers (the published code's, GPT-2's and ours); three runs "
            "in each row of the table are too few to decide which kind is best.\n"
            "Column *the code's, K=1* has one layer of the code of Chi et al. (2023) for each level of the tree. Its "
            "mean accuracies on even pairs, parity and cycle navigation are "
            "{cells[Even Pairs][the code's, K=1][mean]}, {cells[Parity][the code's, K=1][mean]} and "
            "{cells[Cycle Navigation][the code's, K=1][mean]}. With two of these layers for each level, and pads "
            "before the string, the mean accuracies are {cells[Even Pairs][the code's, K=2, pads][mean]}, "
            "{cells[Parity][the code's, K=2, pads][mean]} and "
            "{cells[Cycle Navigation][the code's, K=2, pads][mean]}. With GPT-2's layer, the mean accuracies are "
            "{cells[Even Pairs][GPT-2's, K=1][mean]}, {cells[Parity][GPT-2's, K=1][mean]} and "
            "{cells[Cycle Navigation][GPT-2's, K=1][mean]}.\n"
            "With two layers for each level, the published code treats the beginning of a string in another way than "
            "our nets. No net was run with the code's way."
        ),
        about=(
            "The three kinds are the layer of the published code, GPT-2's layer (which the paper describes), and our "
            "layer. K is the number of layers for each level. The code's layer is trained with K=1 and K=2."
        ),
        notes=(
            "Nets are trained with preset `chi2023` and chunk size C=2, as in `regular-gpt/table-1`. The published "
            "code's layer has its norms after the residual sums. Section 3 of the paper describes GPT-2's layer, and "
            "section 3.2 the use of several layers for each level. For regular languages, the paper uses K=1.",
            "Scale `small`: width 64, 5,000 steps, one seed at each of three learning rates: 1e-4, 3e-4 and 5e-4.",
            "The paper may have used GPT-2's layer or the layer of its code, so its entries are shown for both "
            "layers. Some nets on parity were also measured at lengths 1-40, for `regular-gpt/table-2`. This page "
            "counts only lengths 41-500.",
            "*K=2, pads*: a window contains the symbols below one state of the tree. If a window begins before the "
            "string, it has pads at the positions before the string, and the pads pass through the layers. The "
            "published code adds pads only until the first chunk is full, and its windows contain only these pads "
            'and symbols (setting `left_edge` `"cut"`). So windows near the beginning are shorter. With K=1, nets with '
            "pads and nets with cut windows compute the same function; with K=2, the functions differ. Scale `paper` "
            "runs nets with cut windows.",
            "Our layer was designed for preset `fast`, with pads, noise and Muon. Here it is trained with Adam, "
            "without pads and noise.",
            "In these runs, the code's layer takes 8 to 11 times as many CPU seconds with K=2 as with K=1. With K=1, "
            "RegularGPT computes a state only once for all places where the same window occurs. With K=2, a state "
            "depends on more than its window, so each position is computed separately.",
        ),
        cells=_cells(scale),
        plan=plan_of_lengths(scale, (41, 60) if scale == "smoke" else (41, 500)),
        scoring=Scoring(measure="legal"),
    )


def _cells(scale: Scale) -> list[Cell]:
    """Return a cell for each language, kind of layer, and number of layers for each level."""
    # Recorded results at scale `small` have pads before the string. For K above 1, the published code cuts windows
    # at the start of the string instead.
    edge, two_layers = ("cut", "K=2") if scale == "paper" else ("pads", "K=2, pads")
    cells = []
    for language in LANGUAGES:
        if language.row in ROWS:
            for variant, whose in LAYERS.items():
                for thickness in (1, 2) if variant == "code" else (1,):
                    model: Settings = {"chunk_size": 2, "variant": variant, "thickness": thickness}
                    model |= {"left_edge": edge} if thickness == 2 else {}
                    specs = specs_at_rates(
                        scale, language.task, "regular-gpt", {"task": language.fields, "model": model}
                    )
                    is_published = thickness == 1 and variant != "merge"
                    published = language.published.chunks_of_2 if is_published else ""
                    layers = two_layers if thickness == 2 else "K=1"
                    cells.append(Cell(language.row, f"{whose}, {layers}", specs, published))
    return cells
