"""Tables 1 and 2 of Chi et al. (2023), with their baselines, by the paper's own protocol."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Requirements, Scale, ScaledSpecs, Scoring
from lengthwise.runs.spec import RunSpec, Settings, merge
from lengthwise.studies.languages import LANGUAGES, Language
from lengthwise.tasks.regular.parity import Parity

RATES = (1e-4, 3e-4, 5e-4)
"""The learning rates of Table 4."""

SMALL_STEPS, SMALL_TRANSFORMER_STEPS = 5_000, 2_000
"""Training steps at scale `small`. A step of the Transformer costs about ten times as much as a step of RegularGPT."""


class _Column(NamedTuple):
    """A model, its changes to preset `chi2023`, and the field of `Published` with its entries (empty if none)."""

    model: str
    changes: Mapping[str, Any] = MappingProxyType({})
    published: str = ""


COLUMNS: Mapping[str, _Column] = {
    "RNN": _Column("rnn", published="rnn"),
    "LSTM": _Column("lstm"),
    "GRU": _Column("gru"),
    "Transformer": _Column("transformer", published="transformer"),
    "C=2": _Column("regular-gpt", {"model": {"chunk_size": 2}}, "chunks_of_2"),
    "C=3": _Column("regular-gpt", {"model": {"chunk_size": 3}}, "chunks_of_3"),
}
"""The columns of the paper, and two more recurrent models."""


def specs_at_rates(
    scale: Scale, task: str, model: str, changes: Mapping[str, Any], *, other_tasks: Sequence[Settings] = ()
) -> tuple[RunSpec, ...]:
    """Return specs of preset `chi2023` with the paper's three learning rates; at `smoke`, with the first rate.

    Scale `small` has one seed, width 64 and fewer steps; scale `paper` has three seeds, width 256 and 100,000 steps.
    `other_tasks` are further tasks on which the trained nets are measured (`make_spec`).
    """
    if scale == "small":
        steps = SMALL_TRANSFORMER_STEPS if model == "transformer" else SMALL_STEPS
        changes = merge({"train": {"steps": steps}, "model": {"d_model": 64}}, changes)
    rates = RATES[:1] if scale == "smoke" else RATES
    settings = [merge(changes, {"train": {"optimizer": {"learning_rate": rate}}}) for rate in rates]
    seeds = range(3 if scale == "paper" else 1)
    specs = ScaledSpecs(scale, seeds, model, other_tasks=other_tasks, has_paper=True)
    return tuple(spec for each in settings for spec in specs(task, each, preset="chi2023"))


def plan_of_lengths(scale: Scale, dense: tuple[int, int]) -> EvaluationPlan:
    """Return a plan for a range of lengths; the scale sets the number of strings of each length."""
    strings = {"smoke": 4, "small": 64, "paper": 512}[scale]
    return EvaluationPlan(dense=dense, dense_strings=strings, long=(), structured=())


def _cells(scale: Scale, language: Language) -> list[Cell]:
    """Return the cells of a row of Table 1."""
    is_recognition = language.task in ("bounded-dyck", "tomita")
    fields = language.fields | ({"sampling": "chi2023"} if is_recognition else {})
    fields |= {"leading_plus": True} if language.task == "modular-arithmetic" else {}
    settings: Settings = {"task": fields, "train": {"max_length": 50 if is_recognition else 40}}
    window = (51, 100) if is_recognition else (41, 500)
    return [
        Cell(
            language.row,
            name,
            specs_at_rates(scale, language.task, column.model, merge(settings, column.changes)),
            getattr(language.published, column.published) if column.published else "",
            window,
        )
        for name, column in COLUMNS.items()
    ]


_HEADLINE_1 = (
    "RegularGPT, trained on regular languages, reaches the paper's mean accuracy, to the printed digits, on "
    "{reached[*][C=2]} languages with chunk size C=2 and on {reached[*][C=3]} with C=3.\n"
    "These nets have a quarter of the paper's width, and a twentieth of the paper's training steps.\n"
    "The list of [claims](../claims.md#chi2023) shows which of the paper's entries these results reproduce or "
    "contradict, for RegularGPT and for the other models."
)
_HEADLINE_2 = (
    "RegularGPT and the RNN, trained on parity, reach the paper's mean accuracies, to the printed digits, in "
    "{reached[*][RegularGPT* | RNN*]} cases.\n"
    "A case is an entry of the paper, read in one of two ways (see the next item). So most entries count twice. The "
    "page decides nothing about the paper's Transformer. After 2,000 steps, the mean accuracies of our Transformer "
    "at the training lengths are only {cells[*][Transformer, same length][mean]} ([claims](../claims.md#chi2023))."
)

_NEEDS_1 = (
    "With the paper's size and steps, and nine nets in each cell, a row takes about 250 CPU hours: 184 for the "
    "Transformer, 21 to 26 for the GRU and the LSTM, 10 for RegularGPT and 4 for the RNN (estimated from steps on "
    "parity)."
)
_NEEDS_2 = (
    "With the paper's size and steps, and nine nets in each cell, each of five probabilities takes about 200 CPU "
    "hours. The Transformer takes 184 of these hours (estimated from steps on parity)."
)


@EXPERIMENTS.register("regular-gpt/table-1")
def table_1(scale: Scale = "small") -> Experiment:
    """Table 1 by the paper's own protocol: its strings, baselines, layer, optimizer and learning rates."""
    return Experiment(
        title="Chi et al. (2023), Table 1: RegularGPT and its baselines on regular languages, the paper's protocol",
        headline=_HEADLINE_1,
        about=(
            "The paper's entries are maximum / mean: compare them with columns *best run* and *mean*, which cover "
            "runs with all three learning rates."
        ),
        notes=(
            "At scale `small`, the three runs of a cell have seed 0 and the paper's three learning rates. So *3 of 3* "
            "means one seed at three rates, and the page does not show how much other seeds would differ.",
            "The nets are trained with preset `chi2023`, and strings are drawn as in the published code. Scale "
            "`small` has smaller nets and fewer steps. The width is 64 (paper: 256). Transformers are trained for "
            "2,000 steps and other nets for 5,000 (paper: 100,000; the code: up to 1,000,000).",
            "The paper mentions three seeds for each result, and three learning rates. It does not state which of "
            "these runs its maximum and mean include. Its section 5.2 suggests that both include all learning rates.",
            "The paper states 4.3 million parameters, which is the number of parameters of its Transformer. "
            "RegularGPT shares one layer among its levels, and has 0.79 million parameters at D=256 with C=2.",
            "On strings of D_n and Tomita 3 that are drawn as in the paper, a score above chance does not show that "
            "a net has learned the language. A classifier on shallow features is right on 99.5 to 100 % of the "
            "strings of D_n and, up to rounding, on all strings of Tomita 3. The features are the number of runs, "
            "the frequencies of pairs of symbols, or equal counts of brackets together with the first and last "
            "symbol ([shallow features](shallow-features.md)). With C=2, some mean scores are lower than the "
            "classifier's scores: the paper's on D_3, D_4 and Tomita 3 (99.7, 98.7, 99.7), and ours on D_2, D_4 and "
            "D_12. With C=3, all means on D_n are lower, here and in the paper. The paper does not measure lengths "
            "101-500. At these lengths, our three nets with C=2 on D_2 score 76.88 to 84.66 %, and a constant answer "
            "scores 75 %.",
            "RegularGPT has the published code's layer. Training uses Adam at a constant learning rate, without "
            "augmentation. On D_n and Tomita, nets are trained up to length 50 and scored at 51-100. On other tasks, "
            "they are trained up to 40 and scored at 41-500 (the code begins at 42). Some nets were also measured at "
            "other lengths, which do not count here.",
            "Baselines: the RNN is Elman's network with ReLU, as in the code that the paper builds on. The "
            "Transformer has 5 layers with separate weights, and the relative positions of Transformer-XL. It is "
            "causal, as in the paper, and its answer is read at the last symbol; in the published code, every "
            "position attends to all symbols. The paper has no LSTM and no GRU.",
            "Lengths at which only one answer can occur also count, as in the paper. A rule that uses only whether the "
            "length is odd scores 75 % on D_n and Tomita 5.",
            "Expressions of modular arithmetic begin with a +, as in the published code.",
            "At scale `small`, sixteen Transformers on D_4, D_12 and Tomita 3 to 6 were trained with PyTorch 2.11 and "
            "measured with 2.13.",
        ),
        cells=[cell for language in LANGUAGES if any(language.published) for cell in _cells(scale, language)],
        plan=plan_of_lengths(scale, (41, 60) if scale == "smoke" else (41, 500)),
        scoring=Scoring(measure="legal"),
        requires=Requirements(needs=_NEEDS_1 if scale == "paper" else ""),
    )


PROBABILITIES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""The probabilities of a one in the strings of Table 2."""

WINDOWS: Mapping[str, tuple[int, int]] = {"same length": (1, 40), "extrapolation": (41, 500)}
"""The two parts of Table 2, with the first and last length of each, in symbols."""

_PUBLISHED_TABLE_2: Mapping[str, tuple[str, ...]] = {
    "Transformer, same length": ("98.4", "99.8", "99.6", "97.8", "77.2"),
    "Transformer, extrapolation": ("50.1", "49.7", "50.3", "49.9", "50.0"),
}
"""The columns of the paper's Table 2 with entries other than 100. The entries are in the order of `PROBABILITIES`."""


def _cells_of_table_2(scale: Scale, probability: float, trained_at: float) -> list[Cell]:
    """Return cells for parity. The probability of a 1 is `trained_at` in training and `probability` in the test."""
    is_other = trained_at != probability
    other_tasks = [{"p": other} for other in PROBABILITIES if other != trained_at] if is_other else []
    cells = []
    for name, column in (("RNN", "RNN"), ("Transformer", "Transformer"), ("RegularGPT", "C=2")):
        model, changes, _ = COLUMNS[column]
        settings = merge({"task": {"p": trained_at}}, changes)
        specs = specs_at_rates(scale, "parity", model, settings, other_tasks=other_tasks)
        task = next((task for task in specs[0].other_tasks if task == Parity(p=probability)), None)
        for part, window in WINDOWS.items():
            entries = _PUBLISHED_TABLE_2.get(f"{name}, {part}", ("100",) * len(PROBABILITIES))
            published = entries[PROBABILITIES.index(probability)]
            title = f"{name}, trained at {trained_at}, {part}" if is_other else f"{name}, {part}"
            cells.append(Cell(f"P(1) = {probability}", title, specs, published, window, task))
    return cells


@EXPERIMENTS.register("regular-gpt/table-2")
def table_2(scale: Scale = "small") -> Experiment:
    """Table 2: parity at five probabilities of the symbol 1, for nets trained at the tested probability or at 0.5."""
    cells = [
        cell
        for probability in PROBABILITIES
        for trained_at in dict.fromkeys((probability, 0.5))
        for cell in _cells_of_table_2(scale, probability, trained_at)
    ]
    return Experiment(
        title="Chi et al. (2023), Table 2: parity at other probabilities of a one",
        headline=_HEADLINE_2,
        about=(
            "The paper does not state at which probability its nets were trained, so its table can be read in two "
            "ways. Either each net was trained at the probability at which it was measured, or all nets were trained "
            "at 0.5 (*trained at 0.5*).\n"
            "*Same length*: lengths 1-40, as in training. *Extrapolation*: lengths 41-500. The paper's entries are "
            "means over three seeds, and are shown for both ways to read the table."
        ),
        notes=(
            "The nets are trained with preset `chi2023`. At scale `small`, a net has width 64 and is trained for "
            "5,000 steps (Transformer: 2,000). The three runs of a cell have seed 0 and the paper's three learning "
            "rates.",
            "P(1) is the probability of a one in the measured strings. At P(1) = 0.5, both ways to read the table are "
            "the same. The nets *trained at 0.5* are separate runs with the settings and seeds of row P(1) = 0.5. "
            "Each of them is measured at the other four probabilities without further training.",
            "If P(1) is not 0.5, *chance* is more than 50 % on short strings, because one of the two answers is more "
            "frequent at each length.",
        ),
        cells=cells,
        plan=plan_of_lengths(scale, (1, 60) if scale == "smoke" else (1, 500)),
        scoring=Scoring(measure="legal"),
        requires=Requirements(needs=_NEEDS_2 if scale == "paper" else ""),
    )
