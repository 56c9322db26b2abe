"""Tasks whose answers are strings, with models and the training budget of the leaderboard."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, Scoring
from lengthwise.studies.languages import Language
from lengthwise.studies.leaderboard.experiments.leaderboard import BATCH_SIZE, ENTRANTS, SEEDS, STEPS, specs_of

COLUMNS = (
    "RNN",
    "LSTM",
    "mLSTM",
    "Transformer",
    "Transformer, rotary",
    "Mamba [-1, 1]",
    "DeltaNet [-1, 1]",
    "RegularGPT",
)

ROWS = {
    "Reverse String": ("reverse-string", {"RNN": "62.0", "LSTM": "60.9", "Transformer": "62.3"}),
    "Duplicate String": ("duplicate-string", {"RNN": "50.3", "LSTM": "57.6", "Transformer": "52.8"}),
    "Stack Manipulation": ("stack-manipulation", {"RNN": "56.0", "LSTM": "59.1", "Transformer": "57.5"}),
    "Binary Addition": ("binary-addition", {"RNN": "50.3", "LSTM": "55.5", "Transformer": "54.3"}),
    "Bucket Sort": ("bucket-sort", {"RNN": "27.9", "LSTM": "99.3", "Transformer": "91.9"}),
}
"""The tasks by row, with the entries of Delétang et al. for models that are also on the leaderboard."""

FIT = (40, 0.99)

_HEADLINE = (
    "On bucket sort, LSTMs have a mean of {cells[Bucket Sort][LSTM][mean]}, near the source's best run with "
    "{cells[Bucket Sort][LSTM][paper]}.\n"
    "On the other tasks, {share[not Bucket Sort][*][fits][yes]} cells fit the training length with this budget. The "
    "highest mean beyond 40 letters on these tasks is {highest[not Bucket Sort][*][mean]}."
)


@EXPERIMENTS.register("leaderboard/strings")
def strings(scale: Scale = "small") -> Experiment:
    """Train models of the leaderboard on reversing, copying, sorting, adding and stacks; every query is supervised."""
    entrants = [entrant for entrant in ENTRANTS if entrant.column in COLUMNS]
    small = EvaluationPlan(dense_every=9, dense_strings=64, long=((40, 256),), structured=())
    plan = SMOKE_PLAN if scale == "smoke" else small
    return Experiment(
        title="Tasks whose answer is a string",
        headline=_HEADLINE,
        about=(
            "No finite machine solves these five tasks of Delétang et al. (2023) at every length, so nets have no "
            "certificates.\n"
            "The tasks reverse, duplicate or sort a string, add two numbers, and show a stack after some actions. "
            "Accuracies count symbols of the answer. Three seeds, final weights."
        ),
        notes=(
            f"Budget: the steps, schedule and learning rates of `leaderboard`, {STEPS:,} steps of AdamW on "
            f"{BATCH_SIZE} strings of up to 40 letters, with short strings more often at first. After each string come "
            "queries for all symbols of its answer, one by one, and all of them are supervised. A net reads 2.5 "
            "million symbols (reverse, sort) to 3.7 million (duplicate).",
            "For each string, one symbol of the answer is drawn uniformly and measured. So the score is the mean over "
            "strings of the mean over the answer, and *solved* means that no measured symbol was wrong. The source "
            "averages over the symbols of all strings, so long answers count more. This matters for stacks and sums, "
            "whose answers differ in length. At 41 letters, a net that is right on the first 20 symbols alone scores "
            "72.8 and 69.7 % here, and 67.3 and 67.1 % by the source's rule.",
            "The source's entries are the best of all its runs at lengths of 42 to 500, trained up to 40. The runs "
            "have 10 seeds, "
            "three rates, five position encodings of bidirectional transformers, and a million steps of 128 strings.",
            f"*Fits*: at least {100 * FIT[1]:.0f} % of the strings of {FIT[0]} letters are right, in every run.",
            "In sorting, the position of the queried symbol gives most of the answer (see the shallow baselines "
            "below). Compared with these baselines, the source's 91.9 for a transformer is low.",
        ),
        cells=[
            Cell(
                row,
                entrant.column,
                specs_of(entrant, Language(row, task, {}), "prefix", scale, SEEDS),
                published.get(entrant.column, ""),
                plan.dense,
            )
            for row, (task, published) in ROWS.items()
            for entrant in entrants
        ],
        plan=plan,
        scoring=Scoring(fit=(64, FIT[1]) if scale == "smoke" else FIT),
        main=("row", "column", "fits", "mean", "lowest", "solved", "chance", "paper"),
    )
