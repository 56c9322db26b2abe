"""Xu and Sato (2024), On Expressive Power of Looped Transformers."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Requirements, Scale, ScaledSpecs, Scoring
from lengthwise.runs.spec import RunSpec, Settings, merge


class _Problem(NamedTuple):
    """A row of Table 1: task, length, fields, and the paper's entries, in the order of 5, 10, 50 and 100 loops.

    `steps` applies at scale `small`. If `loops` is not empty, it replaces the numbers of loops of the scale.
    """

    row: str
    task: str
    length: int
    fields: Settings
    transformer: str
    plain: str
    timestep: str
    steps: int = 0
    loops: tuple[int, ...] = ()


_PAPER = (
    _Problem("Subset Sum (10)", "subset-sum", 10, {}, "83.4", "84.1 83.0", "83.8 83.9"),
    _Problem("Knapsack (20)", "knapsack", 20, {}, "92.8", "92.2 94.0", "88.7 90.9"),
    _Problem("LCS (60)", "longest-common-subsequence", 60, {}, "70.0", "66.0 81.8 98.6", "68.5 80.5 99.3"),
    _Problem("LCS (100)", "longest-common-subsequence", 100, {}, "39.8", "39.6 45.1 93.5", "36.7 45.6 98.1"),
    _Problem(
        "ED (60)", "edit-distance", 60, {"border": "published"}, "41.4", "23.8 32.6 47.3 47.7", "26.6 38.9 57.3 88.3"
    ),
)

_MANY_LOOPS = (2, 5, 10, 50, 100)

_SMALL = (
    _PAPER[0]._replace(row="Subset Sum (10), hard", fields={"sampling": "hard"}, steps=500),
    _PAPER[1]._replace(
        row="Knapsack (8)", length=8, fields={"max_weight": 10, "max_value": 5, "max_capacity": 20}, steps=1_500
    ),
    _PAPER[2]._replace(row="LCS (12)", length=12, fields={"alphabet": 4}, steps=1_500),
    _PAPER[2]._replace(row="LCS (6)", length=6, fields={"alphabet": 4}, steps=1_000, loops=_MANY_LOOPS),
    _PAPER[4]._replace(row="ED (12)", length=12, fields={"alphabet": 4}, steps=4_000),
    _PAPER[4]._replace(row="ED (6)", length=6, fields={"alphabet": 4}, steps=1_000, loops=_MANY_LOOPS),
)

_SMALL_TRAIN: Settings = {"batch_size": 64, "optimizer": {"schedule": "constant", "warmup_steps": 100}}
"""The changes to preset `plain` at scale `small`."""

_SMALL_POSITIONS = 28
"""The number of symbols of the longest problem, which has two strings of 12 and 14 letters.

Positions are learned, because training is far slower with sinusoids.
"""

_LOOPS: dict[Scale, tuple[int, ...]] = {"paper": (5, 10, 50, 100), "small": (2, 5, 10), "smoke": (2,)}

_LAYERS: dict[Scale, int] = {"paper": 12, "small": 5, "smoke": 2}
"""The number of layers of the transformer without loops."""

_VARIANTS = {"plain loop": "code", "control": "control", "timestep": "timestep"}
"""The columns of Table 1 and their variants of `looped-transformer`."""

_WIDE: dict[Scale, int] = {"paper": 312, "small": 84, "smoke": 20}
"""The widths at which the control's layer has about as many parameters as the timestep layer with gains and gates.

For widths d = 64 and 256 of the timestep layer, a control layer of width D has 12 D^2 + 13 D parameters. This number
differs from the 17 d^2 + 271 d parameters of the timestep layer by at most 1.5 %. The number of heads divides D.
"""

_WIDE_LOOPS = 5


def _dynamic_programming(scale: Scale, problem: _Problem, model: str, sizes: Settings) -> tuple[RunSpec, ...]:
    """Return specs of three seeds (at `smoke`, of one seed), with problems of one length as in the paper.

    The preset is `xu2024` at scale `paper`, and `plain` at other scales.
    """
    length = 8 if scale == "smoke" else problem.length
    settings: Settings = {
        "task": {**problem.fields, "max_length": length},
        "model": sizes,
        "train": {"min_length": length, "max_length": length, "lengths": "legal"},
    }
    if scale == "small":
        small = {**_SMALL_TRAIN, "steps": problem.steps}
        settings = merge({"train": small, "model": {"learned_positions": _SMALL_POSITIONS}}, settings)
    preset = "xu2024" if scale == "paper" else "plain"
    return ScaledSpecs(scale, range(3), model, has_paper=True)(problem.task, settings, preset=preset)


def _row(scale: Scale, problem: _Problem) -> Iterator[Cell]:
    """Yield the cells of a row: a transformer, each kind of loop with each number of loops, and the wide control."""
    window = (8, 8) if scale == "smoke" else (problem.length, problem.length)
    layers = _LAYERS[scale]
    specs = _dynamic_programming(scale, problem, "transformer", {"num_layers": layers})
    yield Cell(problem.row, f"transformer, L={layers}", specs, problem.transformer, window)
    printed = {"plain loop": problem.plain.split(), "timestep": problem.timestep.split()}
    for column, variant in _VARIANTS.items():
        published = dict(zip(_LOOPS["paper"], printed.get(column, ()), strict=False))
        for num_loops in _loops(scale, problem):
            sizes: Settings = {"variant": variant, "num_loops": num_loops}
            if scale == "paper" and num_loops > 10:
                sizes["activations"] = "recomputed"
            specs = _dynamic_programming(scale, problem, "looped-transformer", sizes)
            yield Cell(problem.row, f"{column}, R={num_loops}", specs, published.get(num_loops, ""), window)
    sizes = {"variant": "control", "num_loops": _LOOPS["smoke"][0] if scale == "smoke" else _WIDE_LOOPS}
    specs = _dynamic_programming(scale, problem, "looped-transformer", {**sizes, "d_model": _WIDE[scale]})
    yield Cell(problem.row, f"wide control, R={sizes['num_loops']}", specs, "", window)


def _loops(scale: Scale, problem: _Problem) -> tuple[int, ...]:
    """Return the row's own numbers of loops or, if the row has none, the numbers of the scale.

    At scale `paper`, these are the numbers for which the paper has entries.
    """
    if scale == "smoke":
        return _LOOPS[scale]
    of_paper = _LOOPS["paper"][: len(problem.timestep.split())]
    return problem.loops or (of_paper if scale == "paper" else _LOOPS[scale])


def _parameters(cells: Sequence[Cell]) -> str:
    """Return a sentence on the number of parameters of a row's models."""
    counts: dict[str, int] = {}
    for cell in cells:
        kind = cell.column.split(", R=")[0]
        if kind not in counts:  # loops share their parameters
            named = cell.specs[0].outline().named_parameters()
            counts[kind] = sum(p.numel() for name, p in named if not name.startswith("read"))
    sizes = ", ".join(f"{count:,} ({name})" for name, count in counts.items())
    return f"Parameters, without the layers for input and output: {sizes}."


def _compared(loops: Sequence[int], layers: int) -> list[tuple[str, str]]:
    """Return the pairs of columns to compare.

    The two columns of a pair differ in timestep encoding, in width, in the number of loops, or in whether layers are
    looped or separate.
    """
    time = [(f"timestep, R={r}", f"{other}, R={r}") for other in ("control", "plain loop") for r in loops]
    more = [(f"{arm}, R={many}", f"{arm}, R={few}") for arm in _VARIANTS for few, many in pairwise(loops)]
    wide = [(f"timestep, R={r}", f"wide control, R={r}") for r in loops]
    return [*time, *wide, *more, (f"timestep, R={layers}", f"transformer, L={layers}")]


_HEADLINE = (
    "Among {compared} differences between nets trained on dynamic programming at a small size, {decided} are "
    "statistically significant after correction for the number of differences.\n"
    "Three seeds show at most the direction of a difference. Xu and Sato measure larger problems "
    "([claims](../claims.md#xu2024))."
)

_TAKEN_ALONE = (
    "This paragraph lists the differences whose own interval excludes 0, without correction for the number of "
    "differences. Timestep is better than control on LCS (12) at 2, 5 and 10 loops, on LCS (6) at 2 and 50, and on "
    "the knapsack and ED at 5. Timestep is better than wide control on LCS and on ED (12). Timestep is better than "
    "the plain loop only on ED (6) at 100 loops, and worse on ED at 5. Five loops are better than two for the plain "
    "loop and timestep on LCS and ED, and for the control on LCS (12), ED (6) and the knapsack. Ten loops are better "
    "than five for timestep and control on LCS (12), for control on the knapsack, and for the plain loop on ED (6). "
    "More than 10 loops are never better than 10. On ED (6), all three nets *plain loop* with 100 loops, and two of "
    "the three with 50, score below all three with 10. But the intervals of the differences between 10 and 50 loops, "
    "and between 50 and 100 loops, contain 0. These nets have the same learning rate and steps, and the nets that "
    "score lower have higher losses. A transformer with 5 layers is better than timestep with 5 loops on LCS. "
    "Timestep has 1.7 times as many parameters as control."
)


_POOLS = (
    "In longest common subsequences, letters are not uniform in the alphabet. For each string, a pool of 13 letters is "
    "drawn with replacement from the alphabet, here of 4 letters. The string's letters are uniform in that pool. (The "
    "paper states uniform letters, but the two strings of 60 letters in its example have 10 and 11 different letters.)"
)

_COST = (
    "Scale `small` takes about 13 CPU hours, more than half of them for nets with 50 and 100 loops. ED (6) took 3.7 "
    "CPU hours as measured; the other costs are estimated from the time of two steps of each cell. Some nets were "
    "trained on a GPU with PyTorch 2.11, wholly or in part. These are the nets on LCS (6) with 50 and 100 loops, the "
    "nets on the knapsack with 10 loops, the plain loop with 10 loops on LCS (12) and ED (12), and the wide control "
    "on ED (12)."
)

_NEEDS_1 = (
    "Training a net of the paper's size takes 3 x 10^16 to 8 x 10^18 operations: a week to five years on a CPU core, "
    "or minutes to a day on a GPU."
)
_NEEDS_2 = (
    "Training a net of the paper's size takes 1.5 x 10^17 to 1.1 x 10^18 operations: one to nine months on a CPU core, "
    "or half an hour to three hours on a GPU."
)


@EXPERIMENTS.register("looped/table-1")
def table_1(scale: Scale = "small") -> Experiment:
    """Table 1: train looped transformers on dynamic programming: with timestep encoding, constant gates, or neither."""
    problems = _PAPER if scale == "paper" else _SMALL
    rows = [list(_row(scale, problem)) for problem in problems]
    return Experiment(
        title="Xu and Sato (2024), Table 1: looped transformers on dynamic programming",
        headline=_HEADLINE,
        about=(
            "A looped transformer applies one layer R times. *Timestep*: the layer's gains and gates are functions "
            "of the loop's number. *Control*: gains and gates are learned, but the same in all loops.\n"
            "*Plain loop*: the published code's net, which has no such gains and gates, and has another norm and "
            "activation. The paper calls this net *looped TF*. *Wide control*: *control* at a larger width, with "
            "about as many parameters as *timestep*."
        ),
        notes=(
            "Rows: *LCS* is the longest common subsequence of two strings, and *ED* the edit distance. The number in "
            "brackets is the length of a string in letters, or the number of items. Without a number, *LCS* and *ED* "
            "mean both lengths.",
            _parameters(rows[0]),
            "Wide control has about as many parameters as timestep. So a difference between these two nets is not due "
            "to the number of parameters.",
            _COST,
            "At scale `small`, strings have 12 letters from an alphabet of 4 (paper: 60 letters from 26). Nets with "
            "50 and 100 loops are trained only on strings of 6 letters. A knapsack has 8 items of weight 1 to 10 and "
            "value 1 to 5, and a capacity of up to 20. (In the paper it has 20 items, with weights, values and "
            "capacities up to 20, 10 and 50.) Edit distances are true edit distances. In the paper, each letter that "
            "is deleted or inserted at the start costs 1 instead of 2. Subset sums are hard: the shallow baselines "
            "below are at chance, and a search through all sums of three items is right on 79 %. (In the paper's "
            "setting, a rule that uses only the target and the sum of all items is right on 82 %.) All nets are at "
            "chance on hard subset sums.",
            _POOLS,
            _TAKEN_ALONE,
            "At scale `small`, nets have width 64 (paper: 256), and the transformer has 5 layers (paper: 12). They "
            "are trained with preset `plain`, Muon at a constant learning rate, and learned positions. A batch has "
            "64 problems (paper: 128). The number of steps is 1,500 (knapsack, LCS of 12), 1,000 (strings of 6), "
            "4,000 (ED of 12) or 500 (subset sum); the paper trains for 781,250. The activations of all loops are "
            "stored. This is faster than recomputing them, and takes 0.5 GB for 100 loops on strings of 6. With "
            "sinusoidal positions, as in the paper, nets learned edit distances far more slowly.",
            "Selection: positions, learning rate, steps and alphabet were chosen by pilot runs of seed 0, which were "
            "measured on other strings than the nets of this page. The knapsack, strings of 6 and the wide control "
            "had no pilot runs. Nothing else is selected. The paper reports the best accuracy on 1,000 test problems. "
            "*Best test* is a different score: the score of Fan et al. (2024), on 128 problems.",
            "The answer is one class, read at the symbol `<sep>`. The paper's accuracy also counts the end symbol "
            "after the answer. Here every step draws new strings; the paper repeats a million strings 100 times.",
            "Scale `paper` has the published sizes, steps, positions and labels, with preset `xu2024`.",
        ),
        cells=[cell for row in rows for cell in row],
        # No task has strings longer than its row's length, so length 100 is replaced by the row's length. Test strings
        # have seed 1, because pilots already used strings of seed 0.
        plan=EvaluationPlan(
            dense=(100, 100), dense_strings=64 if scale == "smoke" else 4_000, long=(), structured=(), seed=1
        ),
        scoring=Scoring(
            measure="legal",
            best_test=True,
            compared=_compared(sorted({r for one in problems for r in _loops(scale, one)}), _LAYERS[scale]),
        ),
        requires=Requirements(needs=_NEEDS_1 if scale == "paper" else ""),
    )


_IN_CONTEXT_LOOPS: dict[Scale, tuple[int, ...]] = {"paper": (12, 50, 70), "small": (5,), "smoke": (2,)}
"""The numbers of loops at each scale. The entries of Table 2 are shown next to the first number."""

_TREES: dict[Scale, Settings] = {
    "paper": {"depth": 4, "dims": 20, "max_points": 101},
    "small": {"depth": 2, "dims": 5, "max_points": 26},
    "smoke": {"depth": 2, "dims": 5, "max_points": 8},
}

_SMALL_TREES: Settings = {
    "model": {"d_model": 64, "num_heads": 4},
    "train": {"steps": 3_000, "batch_size": 16, "min_length": 26, "max_length": 26, "supervision": "prefix"},
}
"""The changes to preset `plain` for decision trees at scales `small` and `smoke`."""


def _in_context(scale: Scale, model: str, sizes: Settings) -> tuple[RunSpec, ...]:
    """Return specs of three seeds (at `smoke`, of one seed).

    The preset is `xu2024-in-context` at scale `paper`, and `plain` with `_SMALL_TREES` at other scales.
    """
    settings: Settings = {"task": _TREES[scale], "model": sizes}
    if scale != "paper":
        positions = {"learned_positions": 2 * _TREES[scale]["max_points"] - 1}
        settings = merge(merge(_SMALL_TREES, {"model": positions}), settings)
    preset = "xu2024-in-context" if scale == "paper" else "plain"
    return ScaledSpecs(scale, range(3), model, has_paper=True)("decision-tree", settings, preset=preset)


PRINTED_ERRORS = {"transformer": "8.64e-03", "plain loop": "1.43e-02", "timestep": "1.70e-03"}
"""The entries of Table 2 for nets with 12 layers or loops, on trees of depth 4 in 20 dimensions."""


def _in_context_cells(scale: Scale) -> Iterator[Cell]:
    """Yield the transformer of Table 2, then each kind of loop with each number of loops."""
    trees, layers = _TREES[scale], _LAYERS[scale]
    row = f"depth {trees['depth']}, {trees['dims']} dimensions, {trees['max_points']} points"
    specs = _in_context(scale, "transformer", {"num_layers": layers})
    yield Cell(row, f"transformer, L={layers}", specs, PRINTED_ERRORS["transformer"])
    for column, variant in _VARIANTS.items():
        for index, num_loops in enumerate(_IN_CONTEXT_LOOPS[scale]):
            sizes: Settings = {"variant": f"{variant}-in-context", "num_loops": num_loops, "injection": "input"}
            if num_loops > 12:
                sizes["activations"] = "recomputed"
            specs = _in_context(scale, "looped-transformer", sizes)
            yield Cell(row, f"{column}, R={num_loops}", specs, "" if index else PRINTED_ERRORS.get(column, ""))


@EXPERIMENTS.register("looped/table-2")
def table_2(scale: Scale = "small") -> Experiment:
    """Table 2: train looped and ordinary transformers to predict the values of decision trees from examples."""
    cells = list(_in_context_cells(scale))
    points = _TREES[scale]["max_points"]
    return Experiment(
        title="Xu and Sato (2024), Table 2: decision trees in context",
        headline=(
            "Nets predict values of small decision trees from examples: with three seeds, {decided} of {compared} "
            "differences between the nets' errors are statistically significant after correction for the number of "
            "differences.\n"
            "The mean squared error is {cells[depth 2, 5 dimensions, 26 points][timestep, R=5][error]} with timestep "
            "encoding and {cells[depth 2, 5 dimensions, 26 points][plain loop, R=5][error]} in the plain loop (the "
            "paper, for larger trees: {cells[depth 2, 5 dimensions, 26 points][timestep, R=5][paper]} and "
            "{cells[depth 2, 5 dimensions, 26 points][plain loop, R=5][paper]})."
        ),
        about=(
            "A prompt contains points, and each point is followed by the value of a decision tree at this point. The "
            "net predicts the value at each point.\n"
            "One layer is applied R times, and the input is added before each loop. *Timestep*: the layer's gains and "
            "gates are functions of the loop's number. *Control*: gains and gates are learned, but the same in all "
            "loops. *Plain loop*: the published code's net, which has no such gains and gates."
        ),
        notes=(
            _parameters(cells),
            "At scale `small`, trees have depth 2 in 5 dimensions (paper: depth 4 in 20). Prompts have 26 points "
            "(paper: 101), and nets have 5 loops or layers (paper: 12).",
            "At scale `small`, nets have width 64 (paper: 256), and are trained for 3,000 steps of 16 prompts (paper: "
            "200,000 of 64) with preset `plain` and Muon.",
            "All nets have the published layers, with GELU. Timestep and control have RMSNorm without a gain, and the "
            "plain loop has LayerNorm. So timestep and the plain loop differ in more than the timestep encoding.",
            "The paper does not state at which positions it measures errors. Its code suggests the last position, and "
            "errors that are divided by the number of dimensions (20 in the paper).",
            "Scale `paper` has the published sizes and steps, with preset `xu2024-in-context`, and also has nets "
            "with R = 50 and R = 70. As in the published code, prompts get more points during training. (In the "
            "paper, the number of dimensions also grows, but this has no effect in the published code.)",
        ),
        cells=cells,
        plan=EvaluationPlan(
            dense=(points, points), dense_strings=64 if scale == "smoke" else 1_280, long=(), structured=()
        ),
        scoring=Scoring(measure="error", compared=_compared(_IN_CONTEXT_LOOPS[scale], _LAYERS[scale])),
        requires=Requirements(needs=_NEEDS_2 if scale == "paper" else ""),
    )
