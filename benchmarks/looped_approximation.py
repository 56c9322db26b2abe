"""Error of looped approximations against loops, compared with the theorem's bound, for two tokens of one number.

python benchmarks/looped_approximation.py [--save] [--quick]
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import torch
import vl_convert
from jaxtyping import Float
from speed_page import ROOT, environment, parse_options, provenance, write_files
from torch import Tensor

from lengthwise.analysis.continuity import Kind, continuity_modulus, unit_domain
from lengthwise.constructions.looped import (
    LoopedApproximation,
    Sizes,
    error_bound,
    evaluate_exactly,
    looped_approximation,
    sizes_of,
    timed_approximation,
)
from lengthwise.constructions.looped.approximation import loop_budget
from lengthwise.report.charts.curves import PALETTE, log_ticks
from lengthwise.report.tables.markdown import markdown_table

BINS = (2, 3, 4, 6, 8, 12, 16)
QUICK_BINS = (2, 3)
DISTANCES = (0.05, 0.1, 0.2, 0.4)
NODES = 8
"""The number of Gauss-Legendre points along each side of a cube."""

SHARE = 0.5
"""The weight of the other token's bump in an output."""

BUILDERS = {"one block": looped_approximation, "with factors": timed_approximation}


def mixed(x: Float[Tensor, "B 2 1"]) -> Float[Tensor, "B 2 1"]:
    """Return f(x)_n = s(x_n) + c s(x_m) for two tokens n and m, with the bump s(x) = (1 - cos 2 pi x) / 2, c = 1/2."""
    bump = (1 - torch.cos(2 * math.pi * x)) / 2
    return bump + SHARE * bump.flip(1)


def token(t: float) -> float:
    """Return the token modulus of `mixed`: s(x) - s(y) = sin(pi (x + y)) sin(pi (x - y)) is at most sin(pi t)."""
    return math.sin(math.pi * min(t, 0.5))


def contextual(t: float) -> float:
    """Return the contextual modulus: the change that the other token causes."""
    return SHARE * token(t)


def sequence(t: float) -> float:
    """Return the sequence modulus: both tokens move by t / sqrt(2), along the larger eigenvector of [[1, c], [c,
    1]]."""
    return (1 + SHARE) * math.sqrt(2) * token(t / math.sqrt(2))


MODULI: dict[Kind, Any] = {"sequence": sequence, "contextual": contextual, "token": token}
CONSTANT = math.sqrt(2 * (1 + SHARE**2) / 8)
"""The L^2 error of the best constant answer: s has variance 1/8."""

LARGEST = math.sqrt(2) * (1 + SHARE)
"""The largest 2-norm of a difference: outputs and values of the function lie in [0, 1 + c]."""


class Measurement(NamedTuple):
    """The L^2 error of a network, the part of this error from cubes of two different tokens, and the bound."""

    name: str
    bins: int
    sizes: Sizes
    budget: int
    error: float
    error_different: float
    bound: float


def main() -> None:
    options = parse_options(__doc__)
    measured = []
    for bins, (name, build) in product(QUICK_BINS if options.quick else BINS, BUILDERS.items()):
        measured.append(measure(name, build(mixed, bins, 2)))
        print(*_line(measured[-1]), sep=" | ", flush=True)
    moduli = search(num_steps=10 if options.quick else 100)
    print("moduli found / known:", *(f"{kind} {value:.4f}" for kind, _, _, value in moduli))
    if options.save:
        save(measured, moduli)


def measure(name: str, made: LoopedApproximation) -> Measurement:
    """Run the network exactly on every cube, and integrate its squared error."""
    bins = made.grid.num_bins
    cubes = np.array(list(product(range(bins), repeat=2)))
    centers = np.frompyfunc(Fraction, 2, 1)((2 * cubes + 1).astype(object), 2 * bins)
    outputs = evaluate_exactly(made.network, centers[..., None])
    squared = torch.from_numpy(_squared_errors(cubes, outputs.astype(float), bins))
    different = torch.from_numpy(cubes[:, 0] != cubes[:, 1])
    is_timed = made.network.scales is not None
    bound = error_bound(
        made.grid,
        sequence=sequence,
        token=None if is_timed else token,
        contextual=None if is_timed else contextual,
        largest=LARGEST,
    )
    errors = [float(part.sum().sqrt()) for part in (squared, squared[different])]
    return Measurement(name, bins, sizes_of(made.network), loop_budget(made.grid), *errors, bound)


def search(num_steps: int) -> list[tuple[Kind, float, float, float]]:
    """Return, for each kind of modulus and each distance, the value found and its fraction of the known modulus."""
    lines = []
    for kind, modulus in MODULI.items():
        generator = torch.Generator().manual_seed(0)
        points = continuity_modulus(mixed, kind, DISTANCES, unit_domain(2, 1), generator, num_steps=num_steps)
        lines += [(kind, t, value, value / modulus(t)) for t, value, _, _ in points]
    return lines


def save(measured: Sequence[Measurement], moduli: Sequence[tuple[Kind, float, float, float]]) -> None:
    """Write page and picture."""
    folder = ROOT / "docs" / "results"
    write_files(
        {
            folder / "looped-approximation.svg": vl_convert.vegalite_to_svg(chart(measured).to_dict()),
            folder / "looped-approximation.md": _page(measured, moduli),
        }
    )


def chart(measured: Sequence[Measurement]) -> alt.LayerChart:
    """Draw errors (solid) and bounds (dashed) against loops on logarithmic axes, a color for each kind of network."""
    values = [
        {"loops": m.sizes.num_loops, "network": m.name, "what": what, "error": round(error, 6)}
        for m in measured
        for what, error in (
            ("the theorem's bound", m.bound),
            ("measured", m.error),
            ("measured, different tokens", m.error_different),
        )
        if error > 0
    ]
    loops = [m.sizes.num_loops for m in measured]
    x = alt.X(
        "loops:Q",
        title="loops",
        scale=alt.Scale(type="log", domain=[0.8 * min(loops), 1.3 * max(loops)], nice=False),
        axis=alt.Axis(format=",d", values=log_ticks(min(loops), 1.3 * max(loops)), grid=False),
    )
    y = alt.Y(
        "error:Q",
        title="L² error",
        scale=alt.Scale(type="log", domain=[0.05, 7], nice=False),
        axis=alt.Axis(format="~g", values=[0.05, 0.1, 0.2, 0.5, 1, 2, 5]),
    )
    top = {"orient": "top", "direction": "horizontal", "titleOrient": "left", "symbolOpacity": 1}
    color = alt.Color(
        "network:N",
        title=None,
        scale=alt.Scale(domain=list(BUILDERS), range=PALETTE[: len(BUILDERS)]),
        legend=alt.Legend(**top),
    )
    dash = alt.StrokeDash(
        "what:N",
        title=None,
        scale=alt.Scale(
            domain=["the theorem's bound", "measured", "measured, different tokens"], range=[[6, 4], [1, 0], [2, 2]]
        ),
        legend=alt.Legend(**top),
    )
    base = alt.Chart(alt.InlineData(values=values), width=520, height=340).encode(x=x, y=y, color=color)
    return alt.LayerChart(
        layer=[base.mark_line(strokeWidth=2).encode(strokeDash=dash), base.mark_point(filled=True, size=30, opacity=1)],
        config=alt.Config(background="white"),
    )


def _squared_errors(cubes: np.ndarray, outputs: np.ndarray, bins: int) -> np.ndarray:
    """Integrate the squared error over each cube by Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    pairs = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    points = (cubes[:, None] + (pairs + 1) / 2) / bins
    values = mixed(torch.from_numpy(points).flatten(0, 1)[..., None]).unflatten(0, points.shape[:2])[..., 0].numpy()
    squared = ((values - outputs[:, None, :, 0]) ** 2).sum(-1)
    integrals: np.ndarray = squared @ np.outer(weights, weights).ravel() / (2 * bins) ** 2
    return integrals


def _page(measured: Sequence[Measurement], moduli: Sequence[tuple[Kind, float, float, float]]) -> str:
    header = [
        "network",
        "1/δ",
        "loops",
        "loops in the theorem",
        "L² error",
        "different tokens alone",
        "bound",
        "error / bound",
    ]
    sizes = {m.name: m.sizes for m in measured}
    parts = [
        "# Error against loops: Theorems 3.7 and 4.2",
        _headline(measured),
        "![L² error of looped approximations against loops, and the theorems' bounds](looped-approximation.svg)",
        markdown_table(header, [_line(m) for m in measured]),
        "- *1/δ*: the number of intervals into which the grid divides [0, 1], the range of a token.\n"
        f"- *One block*: the network of Theorem 3.7, in all rows with {_sizes(sizes['one block'])}.\n"
        "- *With factors*: the network of Theorem 4.2. Each loop has its own factors, one for each number that the "
        f"network outputs. Besides the factors, it has {_sizes(sizes['with factors'])}.\n"
        "- *Loops in the theorem*: the number of loops for which the theorem states its bound, 2 + 2 / δ⁴.\n"
        "- *Different tokens alone*: the input has two tokens, and a cube of the grid is an interval for each token. "
        "The entry is the error from cubes in which the two tokens are in different intervals. The other cubes, with "
        "both tokens in one interval, have a fraction δ of the volume. On these cubes, the proof allows any answer. "
        "These cubes cause the largest term, of order √δ, of the bound and of the error.\n"
        "- *Bound*: the theorem's bound. Its term of order √δ is 1.5 √2 √δ, where 1.5 √2 is the largest distance "
        "between an output of the network and a value of the function. Bound and error neglect the gaps between the "
        "intervals that the network tells apart. A gap is a thousandth of an interval here, and can be arbitrarily "
        "narrow.",
        "```console\npython benchmarks/looped_approximation.py --save\n```",
        "Xu and Sato (2024) bound the distance of a looped transformer of fixed size from a continuous "
        "permutation-equivariant function. The bound uses three [moduli of continuity](looped-moduli.md) and the "
        "number of loops. This page runs networks like the networks in the proofs. Their weights are "
        "[closed-form](../looped.md). The networks run exactly, in integers, on all cubes of the grid. There are two "
        "tokens n and m of one number each, and f(x)_n = s(x_n) + s(x_m) / 2 with the bump s(x) = (1 - cos 2πx) / 2. "
        "The bound uses the known moduli of this function: sin πt for a token, half of sin πt for its context, and "
        "1.5 √2 sin(πt / √2) for the sequence. Nothing is trained.",
        _conclusions(measured),
        "## Moduli by search",
        "`lengthwise.analysis.continuity` searches for pairs of inputs whose outputs differ most. Its results are "
        "lower bounds of the three moduli, for any function or model. For this function the moduli are known:",
        markdown_table(
            ["modulus", "distance", "found", "fraction of the known modulus"],
            [[kind, f"{t:g}", f"{value:.5f}", f"{100 * share:.3f} %"] for kind, t, value, share in moduli],
        ),
        provenance(environment()),
    ]
    return "\n\n".join(parts) + "\n"


def _headline(measured: Sequence[Measurement]) -> str:
    """Return a sentence about whether the measured errors are within the theorems' bounds."""
    shares = [m.error / m.bound for m in measured]
    within = sum(share <= 1 for share in shares)
    return (
        f"In {within} of {len(measured)} rows, looped transformers that are built as in the proofs of Xu and Sato "
        "(2024) approximate a function with an error within the theorem's bound.\n"
        "\n"
        f"- The error is {min(shares):.2f} to {max(shares):.2f} times the bound, and falls with the number of loops.\n"
        "- The networks on this page are smaller than the networks in the proofs."
    )


def _conclusions(measured: Sequence[Measurement]) -> str:
    """Return sentences about the effect of loops and of factors."""
    plain, timed = ([m for m in measured if m.name == name] for name in BUILDERS)
    shrunk = [rows[0].error_different / rows[-1].error_different for rows in (plain, timed)]
    below = sum(m.bound < CONSTANT for m in measured)
    worse = [t.bins for p, t in zip(plain, timed, strict=True) if t.error > p.error]
    while_coarse = (
        f" Up to 1/δ = {max(worse)}, the network with factors has a larger error over all cubes than the network of "
        "one block. Most of this error comes from cubes with both tokens in one interval, for which the proofs "
        "construct no answer."
        if worse
        else ""
    )
    return (
        f"The best constant answer has an error of {CONSTANT:.4f}, and the theorems' bound is below this error in "
        f"{below} of {len(measured)} rows. So at these sizes the bound shows that errors fall with the number of "
        f"loops, but not that they are below the error of a constant. From {plain[0].sizes.num_loops} to "
        f"{plain[-1].sizes.num_loops:,} loops, the error on different tokens falls by a factor of {shrunk[0]:.1f} "
        f"with one block and {shrunk[1]:.1f} with factors. With the most loops, this error is "
        f"{plain[-1].error_different:.4f} and {timed[-1].error_different:.4f}. Both networks look up outputs in a "
        "table. With factors, the table contains exact values of the function. With one block, the values are rounded, "
        f"so that they differ by multiples of one fixed step. Both networks are constant on cubes.{while_coarse}"
    )


def _sizes(sizes: Sizes) -> str:
    return (
        f"a state of size {sizes.state_dim}, {sizes.num_heads} head of size {sizes.head_dim}, width {sizes.width} and "
        f"{sizes.num_weights} weights"
    )


def _line(m: Measurement) -> list[str]:
    numbers = [f"{number:.4f}" for number in (m.error, m.error_different, m.bound)]
    return [m.name, str(m.bins), f"{m.sizes.num_loops:,}", f"{m.budget:,}", *numbers, f"{m.error / m.bound:.2f}"]


if __name__ == "__main__":
    main()
