"""Results of runs in a notebook."""

from typing import TYPE_CHECKING

from lengthwise.certification.certificate import ACCENTS
from lengthwise.display import ACCENT, Plotted, accuracy_svg, card, percent

if TYPE_CHECKING:
    from lengthwise.runs.folder import RunResult


def result_card(result: "RunResult") -> str:
    """Task, model, accuracies with a chart, level of the certificate, and cost."""
    spec, training = result.spec, result.training
    dense, long = result.dense.balanced(), result.long.balanced()
    title = f"{spec['task']['name']}, {spec['model']['name']}, seed {spec['seed']}"
    trained = f"lengths {spec['train']['min_length']:,} to {spec['train']['max_length']:,}, {training.step:,} steps"
    pairs = [("trained", f"{trained}, {training.cpu_seconds:,.1f} CPU s"), ("parameters", f"{result.num_parameters:,}")]
    if dense.points:
        lengths = f"lengths {dense.points[0].length:,} to {dense.points[-1].length:,}"
        pairs.append((lengths, f"mean {percent(dense.mean())}, lowest {percent(dense.min())}"))
    pairs += [(f"length {point.length:,}", percent(point.accuracy)) for point in long.points]
    if result.structured.points:
        pairs.append(("structured strings", f"lowest {percent(result.structured.min())}"))
    if result.errors is not None:
        pairs.append(
            ("squared error", f"{result.errors.last.error:.4g} after {result.errors.last.num_examples} examples")
        )
    accent = ACCENT
    if result.certificate is not None:
        accent = ACCENTS[result.certificate.level]
        pairs.append(("certificate", f"{result.certificate.level}. {result.certificate.claim}"))
    pairs.append(("run", result.run_id))
    plotted = [Plotted(p.length, p.accuracy, *p.interval, p.baseline) for p in (*dense.points, *long.points)]
    return card(title, pairs, accuracy_svg(plotted, is_joined=True) if plotted else "", accent=accent)
