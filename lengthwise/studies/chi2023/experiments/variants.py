"""Three variants of RegularGPT's layer, with one or two layers a level (thickness K), under the protocol of Table 1."""

from collections.abc import Mapping
from types import MappingProxyType

from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, Scoring
from lengthwise.runs.spec import Settings
from lengthwise.studies.chi2023.experiments.tables import plan_of_lengths, specs_at_rates
from lengthwise.studies.languages import LANGUAGES

ROWS = ("Even Pairs", "Parity", "Cycle Navigation")

LAYERS: Mapping[str, str] = MappingProxyType({"code": "the code's", "paper": "GPT-2's", "merge": "ours"})
"""Variants of `regular-gpt`, with the origin of their layers."""


@EXPERIMENTS.register("regular-gpt/variants")
def variants(scale: Scale = "small") -> Experiment:
    """Compare the published code's layer (one or two a level), GPT-2's as in the paper, and ours; preset `chi2023`."""
    # Recorded results at scale `small` have pads before the string; for K above 1 the code cuts windows instead.
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
    return Experiment(
        title="Chi et al. (2023): layers and thickness of RegularGPT",
        headline=(
            "Three runs for each cell are too few to decide which of the layers is best.\n"
            "On even pairs, parity and cycle navigation the means with one of the code's layers a level are "
            "{cells[Even Pairs][the code's, K=1][mean]}, {cells[Parity][the code's, K=1][mean]} and {cells[Cycle "
            "Navigation][the code's, K=1][mean]}. With two of these layers and pads before the string they are "
            "{cells[Even Pairs][the "
            "code's, K=2, pads][mean]}, {cells[Parity][the code's, K=2, pads][mean]} and {cells[Cycle Navigation][the "
            "code's, K=2, pads][mean]}. With GPT-2's layer they are {cells[Even Pairs][GPT-2's, K=1][mean]}, "
            "{cells[Parity][GPT-2's, K=1][mean]} and {cells[Cycle Navigation][GPT-2's, K=1][mean]}.\n"
            "The published code's own form of two layers a level was not run."
        ),
        about=(
            "The layers are the published code's, GPT-2's, which the paper describes, and ours, with one or two layers "
            "a level (K)."
        ),
        notes=(
            "Preset `chi2023` and C=2, as in `regular-gpt/table-1`. The published code's layer is normalized after its "
            "residual sums. Section 3 of the paper describes GPT-2's layer, and the paper takes K=1 for regular "
            "languages. Here the code's layer also has K=2 (section 3.2).",
            "Scale `small`: D=64, 5,000 steps, one seed at each of three rates: 1e-4, 3e-4 and 5e-4.",
            "The paper's entries are next to both layers that the paper may have used: GPT-2's and its code's.",
            "*K=2, pads*: windows that begin before the string have pads there, which pass through the layers. The "
            "published code pads only the first chunk and cuts windows at the left edge (setting `left_edge` "
            '`"cut"`). With K=1 both forms compute the same function; with K=2 they differ. Scale `paper` runs the '
            "code's form.",
            "Our layer was designed for preset `fast`, with pads, noise and Muon. Here it is trained by Adam without "
            "these.",
            "K=2 costs more than twice as much as K=1. With K=2 a state depends on more than its window, so equal "
            "windows cannot share one merge, and the lower of the two layers needs the states of all positions.",
        ),
        cells=cells,
        plan=plan_of_lengths(scale, (41, 60) if scale == "smoke" else (41, 500)),
        scoring=Scoring(measure="legal"),
    )
