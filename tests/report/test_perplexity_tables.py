"""Perplexities in tables: the same last tokens are paired, others are not, and what is missing is blank."""

from lengthwise.evaluation.perplexity import PerplexityCurve, PerplexityPoint
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import Cell, Experiment, Scoring
from lengthwise.report.tables.perplexities import chunk_means, curve_table, paired_columns, perplexity_table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult, RunStatus
from lengthwise.runs.spec import RunSpec, make_spec

PLAN = EvaluationPlan(chunk_lengths=(8, 16), num_chunks=3)


def curve(*levels: float, ends: str = "same") -> PerplexityCurve:
    """At each length three chunks, around a level."""
    points = tuple(
        PerplexityPoint(length=8 * (index + 1), last=(level - 0.5, level, level + 0.5), whole=level)
        for index, level in enumerate(levels)
    )
    return PerplexityCurve(split="test", num_chunks=3, ends=ends, baseline=99.0, points=points)


def outcome(spec: RunSpec, measured: PerplexityCurve) -> Outcome:
    result = RunResult(
        run_id=spec.id,
        spec=spec.to_json(),
        weights="final weights",
        num_parameters=7,
        plan=PLAN,
        perplexity=measured,
        probes=(),
        training=RunStatus(step=2),
        evaluation_seconds=0.0,
        process_peak_memory_mb=0.0,
        versions={},
    )
    return Outcome(spec, result)


SPECS = [make_spec("text", "gru", {"model": {"d_model": 8}}, seed=seed) for seed in range(4)]
CELLS = [
    Cell("text", "one", tuple(SPECS[:2]), "9.9"),
    Cell("text", "two", (SPECS[2],)),
    Cell("text", "three", (SPECS[3],)),
]
EXPERIMENT = Experiment(
    "", "", CELLS, PLAN, scoring=Scoring(measure="perplexity", compared=[("one", "two"), ("one", "three")])
)


def test_cells_have_the_geometric_mean_over_runs_and_pairs_a_ratio_with_its_interval() -> None:
    curves = [curve(2.0, 1.0), curve(3.0, 2.0), curve(2.4, 1.5), curve(2.4, 1.5, ends="others")]
    outcomes = [outcome(*pair) for pair in zip(SPECS, curves, strict=True)]
    table = perplexity_table(EXPERIMENT, outcomes)
    one = dict(zip(table.header, table.lines[0], strict=True))
    assert (one["runs"], one["8"], one["16"], one["paper"]) == ("2", "12.18", "4.48", "9.9")  # e^2.5, e^1.5
    assert one["longest / shortest"] == "0.368 (0.368 to 0.368)"  # 1 / e for every chunk
    page = "\n".join(paired_columns(EXPERIMENT, outcomes))
    assert "| text | one | two | 1.105 (1.105 to 1.105) | 1.000 (1.000 to 1.000) |" in page  # e^0.1
    assert "| text | one | three | - | - |" in page, "other last tokens are no pairs"


def test_what_was_not_measured_is_blank() -> None:
    table = perplexity_table(EXPERIMENT, [outcome(SPECS[2], curve(2.4))])
    assert [len(line) for line in table.lines] == [len(table.header)] * 3
    one, two, _ = (dict(zip(table.header, line, strict=True)) for line in table.lines)
    assert (one["8"], one["runs"], one["paper"]) == ("-", "0 of 2", "9.9")
    assert (two["8"], two["16"]) == ("11.02", "-")
    assert chunk_means([curve(1.0), curve(1.0, ends="others")], 8) == []


def test_a_curve_has_a_line_for_each_length() -> None:
    lines = curve_table(curve(2.0, 1.0)).lines
    assert lines[1] == ("16", "2.72", "0.79 to 9.41", "0.368 (0.368 to 0.368)", "2.72")
