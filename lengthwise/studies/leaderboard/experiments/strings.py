"""Tasks whose answers are strings, with models of the leaderboard and its budget of training."""

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
    "On bucket sort, LSTMs trained on strings of up to 40 letters have a mean accuracy of "
    "{cells[Bucket Sort][LSTM][mean]} beyond this length, and the best run of Delétang et al. (2023) has "
    "{cells[Bucket Sort][LSTM][paper]} %.\n"
    "On the other four tasks, {share[not Bucket Sort][*][fits][yes]} cells fit strings of 40 letters with our "
    "budget. (A cell is a model on a task. The notes define *fits*.) The highest mean accuracy beyond 40 letters on "
    "these tasks is {highest[not Bucket Sort][*][mean]}."
)


@EXPERIMENTS.register("leaderboard/strings")
def strings(scale: Scale = "small") -> Experiment:
    """Train models of the leaderboard to reverse, duplicate and sort strings, to add numbers, and to track stacks."""
    entrants = [entrant for entrant in ENTRANTS if entrant.column in COLUMNS]
    small = EvaluationPlan(dense_every=9, dense_strings=64, long=((40, 256),), structured=())
    plan = SMOKE_PLAN if scale == "smoke" else small
    return Experiment(
        title="Tasks whose answer is a string",
        headline=_HEADLINE,
        about=(
            "The five tasks of Delétang et al. (2023) are to reverse, duplicate or sort a string, to add two numbers, "
            "and to return a stack after some actions. Accuracies count symbols of the answer. There are three seeds, "
            "and final weights are measured.\n"
            "No finite machine solves these tasks at every length, so nets have no certificates."
        ),
        notes=(
            f"Budget: {STEPS:,} steps of AdamW on {BATCH_SIZE} strings of up to 40 letters, with the schedule and the "
            "learning rates of `leaderboard`. Short strings are drawn more often at first. Each string "
            "is followed by queries for all symbols of its answer, one by one, and all queries are supervised. A net "
            "reads 2.5 million symbols (reverse, sort) to 3.7 million (duplicate).",
            "For each string, one symbol of the answer is drawn uniformly and measured. So the score estimates the "
            "share of right symbols in an answer, averaged over strings. *Solved* means that no measured symbol was "
            "wrong. Delétang et al. average over the symbols of all strings, so long answers count more. This "
            "matters for stack manipulation and binary addition, whose answers differ in length. At 41 letters, a "
            "net that is right only on the first 20 symbols scores 72.8 % (stack) and 69.7 % (addition) here. By the "
            "method of Delétang et al., this net scores 67.3 % (stack) and 67.1 % (addition).",
            "Column *paper*: the best accuracy, in percent, of all runs of Delétang et al. at lengths 42 to 500. "
            "Their training strings have up to 40 letters. Their runs have 10 seeds, three learning rates, and a "
            "million steps of 128 strings. Their transformers are bidirectional, with five position encodings.",
            f"*Fits*: every run is right on at least {100 * FIT[1]:.0f} % of the strings of {FIT[0]} letters, the "
            "longest training strings.",
            "In sorting, it is often right to answer with the most frequent symbol at the queried position (see the "
            "shallow baselines below). Compared with these baselines, the paper's 91.9 for a transformer is low.",
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
