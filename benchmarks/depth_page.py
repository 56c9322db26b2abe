"""The page on routing and depth: the tree and parallel scans, and the cost of the tree's levels."""

from collections.abc import Sequence
from typing import Any

import vl_convert
from speed_page import ROOT, environment, keep_sections, provenance, write_files

from lengthwise.report.tables.markdown import markdown_table
from lengthwise.studies.chi2023.routing import blelloch_scan, hillis_steele_scan, sliding_routing, tree_routing
from lengthwise.studies.chi2023.routing_chart import routing_chart

PAGE = ROOT / "docs" / "routing.md"

DRAWN = 8
COUNTED = (8, 40, 512)

ROUTINGS = {
    "RegularGPT, every prefix": sliding_routing,
    "RegularGPT, the whole string": tree_routing,
    "Hillis-Steele scan": hillis_steele_scan,
    "Blelloch scan": blelloch_scan,
}


def save(costs: Sequence[Any], d_model: int) -> None:
    """Write page and picture."""
    drawn = {title: ROUTINGS[title](DRAWN) for title in ROUTINGS if title != "RegularGPT, the whole string"}
    files = {
        ROOT / "docs" / "routing.svg": vl_convert.vegalite_to_svg(routing_chart(drawn, DRAWN).to_dict()),
        PAGE: keep_sections(page(costs, d_model), PAGE.read_text(encoding="utf-8")),
    }
    write_files(files)


def page(costs: Sequence[Any], d_model: int) -> str:
    """Return the sections of the page that this benchmark makes."""
    by_shape = {(cost.length, cost.chunk_size): cost for cost in costs}
    example = by_shape[512, 128]
    parts = [
        "# Routing and depth",
        "RegularGPT answers a string of T symbols in log T levels of merges. This page compares its merges with two "
        "parallel scans, and its cost with the cost of a Transformer.",
        "```console\npython benchmarks/depth_cost.py --save\n```",
        "## The tree and parallel scans (Figure 2)",
        f"![Routing of RegularGPT and of two parallel scans over {DRAWN} symbols](routing.svg)",
        "Circles are values, and the string is at the bottom. Lines lead to each value from the values that were "
        f"merged into it. Dark values are needed for the answer after the last of the {DRAWN} symbols.",
        "- C is the number of values that RegularGPT merges into one. With C=2 and a length that is a power of two, "
        "the dark merges are the same in all three routings. This agrees with section 4 of Chi et al. (2023).\n"
        "- RegularGPT also merges pads before the start, which are not drawn. Without these pads, the pass that "
        "answers every prefix is the Hillis-Steele scan, at any length.\n"
        "- The Blelloch scan also answers every prefix. It needs fewer merges than the other two ways to do this, but "
        "up to twice as many steps. It merges values of unequal depth.",
        _merges_table(),
        "Each entry contains the number of steps, and then the number of merges. The package answers all prefixes as "
        "in the first row, and a whole string as in the second row.",
        "## Is it cheaper than a Transformer? (section 3.4)",
        "Let K be RegularGPT's thickness (the number of layers at each level), and L the Transformer's number of "
        "layers. If all multiplications of a layer are counted, RegularGPT is cheaper only if K is smaller than L. "
        "The table contains the ratio K / L at which both models cost the same. Above this ratio, RegularGPT costs "
        "more.",
        "The paper counts only attention, and compares T C K log_C T (RegularGPT) with T² L (Transformer). It "
        "concludes that RegularGPT is likely to be cheaper as long as K < 3L. For T=512 and C=128, its formula gives "
        f"K < {example.published:.2f} L.",
        _costs_table(costs),
        "- *Formula*: the ratio is T / (C log_C T), which counts only attention.\n"
        "- *Pairs*: the pairs of a query and a key that the masks allow are counted. The number of levels is rounded "
        "up, and the Transformer is causal.\n"
        f"- *Layers*: all multiplications of a layer of width D={d_model} are counted: 2 D for each pair, and 12 D² "
        "for each position.\n"
        "- *Measured*: the CPU time of a forward pass over one string is measured on one core, of attention alone or "
        "of whole layers. All times are from one run, and each time is the median of 5 passes. RegularGPT computes "
        "attention block by block. Before any timing, this attention is compared with the masked definition. Both "
        "models use torch's attention kernel and the same projections and feed-forward block. Attention in blocks "
        "computes up to twice as many pairs as the masks allow.",
        f"So K < 3L is a statement about attention alone. At T={example.length}, attention is a small part of the "
        f"cost of a layer of width {d_model}. Windows of {example.chunk_size} symbols need 2 levels, so a pass of "
        f"thickness K costs about as much as 2 K layers. The costs are equal at K / L = {example.layers:.2f} if "
        f"multiplications are counted, and at {example.layers_measured:.2f} if times are measured.",
        provenance(environment()),
    ]
    return "\n\n".join(parts) + "\n"


def _merges_table() -> str:
    lines = []
    for title, routing in ROUTINGS.items():
        counted = [routing(length) for length in COUNTED]
        lines.append([title, *(f"{max(merge.step for merge in merges)}, {len(merges):,}" for merges in counted)])
    return markdown_table(["routing, C=2", *(f"T={length}" for length in COUNTED)], lines)


def _costs_table(costs: Sequence[Any]) -> str:
    header = ["T", "C", "formula", "pairs", "layers", "attention, measured", "layers, measured"]
    lines = [[str(cost.length), str(cost.chunk_size), *(f"{share:.2f}" for share in cost[2:])] for cost in costs]
    return markdown_table(header, lines)
