"""Fan et al. (2024), Advancing Regular Language Reasoning in Linear Recurrent Neural Networks."""

from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import (
    EXPERIMENTS,
    SMOKE_PLAN,
    Cell,
    Experiment,
    Scale,
    ScaledSpecs,
    Scoring,
    with_certificates,
)
from lengthwise.runs.spec import RunSpec, Settings, merge


class Fan2024Task(NamedTuple):
    """A column of Table 2 of the paper: our task, the published code's settings, and the paper's entries by row.

    The settings are the length of strings, the learning rate, the weight decay, and the number of layers.
    """

    name: str
    length: int
    rate: float
    decay: float
    layers: int
    published: dict[str, str]


TASKS = {
    "Sum(5)": Fan2024Task("sum", 40, 1e-4, 0.0, 1, {"Ours": "1.00", "S4": "0.27", "S4D": "0.27", "Liquid-S4": "0.27"}),
    "EvenPair(5)": Fan2024Task(
        "equal-ends", 40, 2e-4, 0.0, 1, {"Ours": "0.99", "S4": "0.81", "S4D": "0.82", "Liquid-S4": "0.72"}
    ),
    "ModArith(5)": Fan2024Task(
        "modular-arithmetic", 39, 2e-4, 1e-4, 3, {"Ours": "1.00", "S4": "0.27", "S4D": "0.27", "Liquid-S4": "0.27"}
    ),
}

LITERAL: Settings = {"columns": "clamped", "input_map": "linear", "first_state": "zero"}
"""Settings of the layer that equations (5) and (6) of the paper define, taken literally."""

_OURS: dict[str, tuple[str, Settings]] = {
    "Ours": ("block-linear-rnn", {}),
    "Ours, clamped columns": ("block-linear-rnn", {"columns": "clamped"}),
    "Ours, eq. (5)-(6)": ("block-linear-rnn", LITERAL),
}

BASELINES: dict[str, tuple[str, Settings]] = {
    "S4": ("s4", {}),
    "S4D": ("s4d", {}),
    "Liquid-S4": ("liquid-s4", {}),
    "Vanilla": ("linear-rnn", {}),
    "RWKV": ("rwkv", {}),
    "S5": ("s5", {}),
    "LRU": ("diagonal-linear-rnn", {"transitions": "constant"}),
    "Diagonal, eq. (3)": ("diagonal-linear-rnn", {"transitions": "input-dependent"}),
}
"""The linear recurrences that the paper names in section 2, equations (2) to (4), and in section 4.3."""

_AT_PAPER_SCALE = ("Ours", "Ours, eq. (5)-(6)")
FIT = (40, 0.99)
"""The training length, in symbols, and the accuracy that a net needs there to count as having learned its task."""


def at_fan_rate(task: Fan2024Task) -> Settings:
    """Return a `train` section with the published code's string length, learning rate and weight decay.

    Preset `fan2024` sets the number of steps.
    """
    return {
        "min_length": task.length,
        "max_length": task.length,
        "optimizer": {"learning_rate": task.rate, "weight_decay": task.decay},
    }


def _small(task: Fan2024Task) -> Settings:
    """Return the steps and the learning rate at scale `small`; the paper has 40,000 steps at 1e-4 or 2e-4.

    A step of a net with three layers takes up to twenty times as long as with one layer, so these nets get fewer steps.
    """
    return {"steps": 2_000 if task.layers == 1 else 1_000, "optimizer": {"learning_rate": 1e-3}}


def _specs(scale: Scale, task: Fan2024Task, model: str, settings: Settings) -> tuple[RunSpec, ...]:
    """Return specs of preset `fan2024` with the task's learning rate, weight decay and number of layers.

    Scale `small` has two seeds, and the steps and the learning rate from `_small`. Scale `paper` has five seeds. For
    nets with three layers, scale `paper` has one seed, because 40,000 steps take hours.
    """
    train = at_fan_rate(task)
    if scale == "small":
        train = merge(train, _small(task))
        settings = merge(settings, {"d_state": 8} if model == "liquid-s4" else {})
    given: Settings = {"model": merge({"num_layers": task.layers}, settings), "train": train}
    seeds = 2 if scale != "paper" else 5 if task.layers == 1 else 1
    return ScaledSpecs(scale, range(seeds), model, has_paper=True)(task.name, given, preset="fan2024")


def _plan(scale: Scale) -> EvaluationPlan:
    if scale == "smoke":
        return SMOKE_PLAN
    return EvaluationPlan(dense_strings=128, long=((40, 256), (500, 256)), structured=((500, 32),), certificate=True)


_HEADLINE = (
    "*Ours*, the layer in the published code of Fan et al. (2024), fits strings of 40 symbols in "
    "{share[*][Ours][fits][yes]} tasks.\n"
    "Its best test accuracies at 500 symbols on Sum(5), EvenPair(5) and ModArith(5) are "
    "{cells[Sum(5)][Ours][best test]}, {cells[EvenPair(5)][Ours][best test]} and "
    "{cells[ModArith(5)][Ours][best test]} (the paper: {cells[Sum(5)][Ours][paper]}, "
    "{cells[EvenPair(5)][Ours][paper]} and {cells[ModArith(5)][Ours][paper]}). If the layer follows eq. (5)-(6) of "
    "the paper literally, the best test accuracies are {cells[Sum(5)][Ours, eq. (5)-(6)][best test]}, "
    "{cells[EvenPair(5)][Ours, eq. (5)-(6)][best test]} and {cells[ModArith(5)][Ours, eq. (5)-(6)][best test]}. On "
    "two other pages, *Ours* is trained for more steps: [at the learning rate of the code](linear-rnn-controls.md), "
    "and [at the paper's size](linear-rnn-table-2-paper.md).\n"
    "With the training recipe of *Ours*, S4, S4D and Liquid-S4 fit strings of 40 symbols in "
    "{share[*][S4 | S4D | Liquid-S4][fits][yes]} cases (three baselines on three tasks). If a net does not fit, its "
    "score at 500 symbols does not measure generalization. On [another page](linear-rnn-baselines-search.md), the "
    "recipe of each baseline is chosen by training loss."
)
_PAPER_HEADLINE = (
    "At the paper's size, *Ours*, the layer in the published code of Fan et al. (2024), has a best test accuracy of "
    "{cells[Sum(5)][Ours][best test]} on Sum(5), {cells[EvenPair(5)][Ours][best test]} on EvenPair(5) and "
    "{cells[ModArith(5)][Ours][best test]} on ModArith(5).\n"
    "The paper prints {cells[Sum(5)][Ours][paper]}, {cells[EvenPair(5)][Ours][paper]} and "
    "{cells[ModArith(5)][Ours][paper]}, which are also best test accuracies. With final weights, "
    "{cells[Sum(5)][Ours][solved]} nets of *Ours* make no error on random strings of 41-500 symbols on Sum(5), "
    "{cells[EvenPair(5)][Ours][solved]} on EvenPair(5) and {cells[ModArith(5)][Ours][solved]} on ModArith(5). On the "
    "three tasks, mean accuracies at these lengths are {cells[Sum(5)][Ours][mean]}, {cells[EvenPair(5)][Ours][mean]} "
    "and {cells[ModArith(5)][Ours][mean]}. But certification finds a string with a wrong answer for "
    "{cells[*][Ours][level refuted]} nets of *Ours*. These strings have {cells[Sum(5)][Ours][counterexamples]} "
    "symbols on Sum(5), {cells[EvenPair(5)][Ours][counterexamples]} on EvenPair(5) and "
    "{cells[ModArith(5)][Ours][counterexamples]} on ModArith(5).\n"
    "If the layer follows eq. (5)-(6) of the paper literally, the best test accuracies are "
    "{cells[Sum(5)][Ours, eq. (5)-(6)][best test]} on Sum(5) and {cells[EvenPair(5)][Ours, eq. (5)-(6)][best test]} "
    "on EvenPair(5). On EvenPair(5), a net that always gives the most frequent answer has an expected best test "
    "accuracy of {cells[EvenPair(5)][Ours, eq. (5)-(6)][guesses]}. With final weights, mean accuracies on these two "
    "tasks are {cells[Sum(5)][Ours, eq. (5)-(6)][mean]} and {cells[EvenPair(5)][Ours, eq. (5)-(6)][mean]} (see the "
    "notes)."
)
_SMALL = (
    "Preset `fan2024` is the recipe of the published code. Nets on this page are trained for a twentieth of its "
    "steps (ModArith: a fortieth), at 5 to 10 times its learning rate. Experiment `linear-rnn/controls` changes the "
    "steps and the learning rate separately."
)
_PAPER = (
    "The nets have the paper's size. They are trained for 40,000 steps by the published code's recipe, with five "
    "seeds (ModArith: one seed). The learning rates are the code's: 0.0001 for Sum, and 0.0002 for EvenPair and "
    "ModArith. ModArith has a weight decay of 0.0001 and three layers. *Best test* is the paper's score; *mean* and "
    "*fits* describe final weights."
)
_ENTRIES = (
    "During training, a run is tested on strings of 500 symbols. The paper's entries are the best of 40 tests, "
    "averaged over five seeds. So these entries should be compared with column *best test*, not with column *mean*."
)
_COLUMNS = (
    "*Ours* is the paper's name for its layer, and means here the layer of the published code. *Clamped columns* is "
    "this layer with the column norm of the paper's eq. (6). *Eq. (5)-(6)* is the layer exactly as the paper prints "
    "it."
)
_PAPER_COLUMNS = (
    "*Ours* is the paper's name for its layer, and means here the layer of the published code. *Eq. (5)-(6)* is the "
    "layer exactly as the paper prints it."
)
_NOTES = (
    "*Fits*: every run is right on at least 99 % of 256 strings of the training length.",
    "The paper's entries are the best of 40 tests of 128 strings. Over 40 such tests, a net that guesses one of five "
    "digits has a best accuracy of 0.28 on average. On EvenPair, a net that always answers that the first and the "
    "last symbol differ has a best accuracy of 0.87. So on Sum and ModArith, the paper's 0.27 for S4, S4D and "
    "Liquid-S4 is about the score of guesses. On EvenPair, their 0.72 to 0.82 are below the score of a constant "
    "answer.",
    "Nets are trained on strings of 40 symbols (ModArith: 39) with the answers to all prefixes. The package calls "
    "Sum(5) `sum`, EvenPair(5) `equal-ends` and ModArith(5) `modular-arithmetic`.",
    "In the published code, two linear maps with a ReLU between them compute the input term v_t from the input u_t, "
    "and the first state is learned. In *eq. (5)-(6)*, the input term is B u_t without a bias, and the first state "
    "is 0. The embedding, the norms and the read-out are always the code's, because the paper does not describe them.",
    "Propositions 1 and 2 of the paper are about subtraction, which Sum and EvenPair do not have. So the "
    "propositions do not explain scores on these two tasks.",
)
_SMALL_NOTES = (
    "Scale `small`: two seeds, 2,000 steps with 2 tests, and a learning rate of 0.001. The paper has five seeds, "
    "40,000 steps, and a learning rate of 0.0001 or 0.0002. For ModArith, nets have three layers and are trained for "
    "1,000 steps with one test. Liquid-S4 has 8 numbers in a state instead of the default of 64.",
    "The table has nine baselines: eight linear recurrences and the LSTM. The paper does not give settings of its "
    "baselines. The baselines here are our own implementations, with the recipe, embedding, norms and read-out of "
    "*Ours*. (The paper took its baselines from a code base that trains the parameters of recurrences at a learning "
    "rate of 0.001 without weight decay.) Baselines have a residual connection around every layer. S4 and its "
    "variants, S5 and the LRU have a gate, and RWKV has channel mixing. *Ours* with one layer has no residual "
    "connection, gate or channel mixing. If each of the eight linear recurrences has its own recipe "
    "(`linear-rnn/baselines-search`), seven fit EvenPair(5), and zero fit Sum(5).",
    "*Vanilla* is `linear-rnn`, with one dense matrix for all symbols. *LRU* is `diagonal-linear-rnn` with constant "
    "transitions. *Diagonal, eq. (3)* is `diagonal-linear-rnn` with transitions tanh(f(u_t)), which depend on the "
    "input u_t.",
    "Sum(5) at scale `small`, *Ours*: both nets are right on all measured strings of up to 130 symbols. Their "
    "accuracies are below chance from 416 symbols on for one net, and from 205 on for the other. At 500 symbols, one "
    "net is right on about an eighth of the strings, and the other net on no string. Guesses would be right on a "
    "fifth of the strings. On all strings, states drift in the same way and leave the regions that the read-out has "
    "learned (`linear-rnn/drift`).",
    "Liquid-S4 is computed step by step by the recurrence of eq. (4), and its states overflow (below). The published "
    "code of Liquid-S4 instead adds a few correlations of inputs to S4's convolution, and may have other scores.",
)
_PAPER_NOTES = (
    "On Sum(5), final weights are worse than the weights at the best test, because the loss jumps late in training. "
    "In all ten nets on Sum(5), the loss first falls below 1e-6. Later it jumps once, within a few steps, to "
    "1.4-4.7. These jumps are between steps 17,215 and 27,416. The learning rate is constant and gradients are not "
    "clipped, as in the code. (The jumps are in the runs' metrics, which the records do not contain.) After the "
    "jump, all nets fit 40 symbols again, and three of the five nets of *Ours* are right at 500 symbols again. The "
    "nets of eq. (5)-(6) are not right at 500 symbols again: their last tests without an error are at steps 22,000 "
    "to 27,000. On EvenPair(5), the loss never jumps. On ModArith(5), the loss of the one net jumps 7 times from "
    "below 0.001 to more than 2, between steps 4,442 and 32,281. In 2 of its 40 tests, this net makes no error.",
    "The code stops a run after a test without errors. Our runs always train for all steps. This does not change the "
    "best test, but may change final weights. On some GPUs, the code multiplies matrices in a lower precision than "
    "float32.",
    "The paper's Table 2 also has S4, S4D and Liquid-S4. Here, these baselines are trained only [at scale "
    "`small`](linear-rnn-table-2.md). The paper does not give their recipes. With the recipe of *Ours*, the "
    "baselines do not fit strings of the training length.",
)


@EXPERIMENTS.register("linear-rnn/table-2")
def table_2(scale: Scale = "small") -> Experiment:
    """Table 2: compare block-diagonal transitions with S4 and similar layers, by best and by final test accuracy."""
    models = {**_OURS, **BASELINES, "LSTM": ("lstm", {})}
    cells = [
        Cell(column, row, _specs(scale, task, model, settings), task.published.get(row, ""))
        for column, task in TASKS.items()
        for row, (model, settings) in models.items()
        if scale != "paper" or row in _AT_PAPER_SCALE
    ]
    about, columns = (_PAPER, _PAPER_COLUMNS) if scale == "paper" else (_SMALL, _COLUMNS)
    size = ", at the paper's size" if scale == "paper" else ""
    return Experiment(
        title=f"Fan et al. (2024), Table 2: linear recurrent networks on regular languages{size}",
        headline=_PAPER_HEADLINE if scale == "paper" else _HEADLINE,
        headline_scale=scale,
        about=_ENTRIES,
        notes=(about, columns, *(_PAPER_NOTES if scale == "paper" else _SMALL_NOTES), *_NOTES),
        cells=cells,
        plan=_plan(scale),
        scoring=Scoring(best_test=True, fit=(64, FIT[1]) if scale == "smoke" else FIT),
    )


@EXPERIMENTS.register("linear-rnn/sensitivity")
def sensitivity(scale: Scale = "small") -> Experiment:
    """Limitation (c) of the paper: vary the block dimension S and the exponent p, for two forms of the column norm."""
    forms = {"code": "rescaled", "columns of eq. (6)": "clamped"}
    task = TASKS["Sum(5)"]
    cells = [
        Cell(f"S={size}, p={p}", form, _specs(scale, task, "block-linear-rnn", settings))
        for size, p in ((2, 1.2), (4, 1.2), (8, 1.0), (8, 1.2), (8, 2.0), (16, 1.2))
        for form, columns in forms.items()
        for settings in [{"block_dim": size, "p": p, "columns": columns}]
    ]
    return Experiment(
        title="Block dimension and column norm",
        headline=(
            "Two seeds and one training length are too few to check that longer sequences need a smaller exponent p "
            "of the column norm, as Fan et al. (2024) state.\n"
            "With blocks of 8 x 8 (S=8) and p = 1, 1.2 and 2, mean accuracies at 41-500 symbols are "
            "{cells[S=8, p=1.0][code][mean]}, {cells[S=8, p=1.2][code][mean]} and {cells[S=8, p=2.0][code][mean]} "
            "with the column norm of the published code. With the column norm of eq. (6) in the paper, they are "
            "{cells[S=8, p=1.0][columns of eq. (6)][mean]}, {cells[S=8, p=1.2][columns of eq. (6)][mean]} and "
            "{cells[S=8, p=2.0][columns of eq. (6)][mean]}.\n"
            "With these three values of p, the best test accuracies at 500 symbols are "
            "{cells[S=8, p=1.0][*][best test]}, {cells[S=8, p=1.2][*][best test]} and "
            "{cells[S=8, p=2.0][*][best test]} (two numbers: the accuracies of the two column norms differ). A net "
            "that always gives the most frequent answer has an expected best test accuracy of "
            "{cells[S=8, *][*][guesses]}."
        ),
        about="The task is Sum(5), and the recipe is the same as on the page on [Table 2](linear-rnn-table-2.md) of "
        "the paper.",
        notes=(
            "S is the dimension of a block, and p is the exponent of the norm of a transition matrix's columns. The "
            "width stays 64, so there are 64 / S blocks. All nets have the layer of the published code, with one of "
            "two column norms. *Code* is the norm of this code: the mean is subtracted from each column, and a block "
            "is divided by the norm of its largest column. *Columns of eq. (6)* is the paper's norm.",
            "The nets with S=8 and p=1.2 are *Ours* and *clamped columns* of `linear-rnn/table-2`. Three of the four "
            "nets with S=2 do not fit strings of 40 symbols (accuracies 18.75, 67.96 and 31.64 %), so their scores "
            "at longer lengths do not measure generalization. The notes of `linear-rnn/layers` explain why blocks of "
            "2 x 2 fail. All other nets fit.",
        ),
        cells=cells,
        plan=_plan(scale),
        scoring=Scoring(best_test=True),
    )


@EXPERIMENTS.register("linear-rnn/ours")
def ours(scale: Scale = "small") -> Experiment:
    """Train on the paper's three tasks by our protocol: preset `machine`, five seeds, final weights, certificates."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2, 3, 4), model="block-linear-rnn")
    plan = EvaluationPlan(dense_strings=128, long=((1_000, 256), (100_000, 1_000)), certificate=True)
    return Experiment(
        title="A linear RNN of one dense block as an automaton learner, our protocol",
        headline=(
            "A linear RNN with one dense block learns the three tasks of Fan et al. (2024): {cells[*][*][level "
            "proved]} nets are proved right at every length.\n"
            "{cells[*][*][solved]} nets make no error on random strings of 41-500 symbols. On strings of 100,000 "
            "symbols, the lowest accuracy is {lowest[*][*][100,000]}."
        ),
        about=(
            "The nets are trained with preset `machine` of `block-linear-rnn`, with five seeds. Final weights are "
            "measured, and no seed, step or setting is selected for a task.\n"
            "Unlike the layer of Fan et al., this layer has a single dense block and no input term. In training, "
            "each column of its transition matrices becomes a one-hot vector. So the trained net is a finite "
            "machine, and a certificate enumerates the states of this machine."
        ),
        notes=(
            "For each symbol, the net has one transition matrix of 128 x 128, which is a single dense block. Each "
            "column of a matrix is a probability distribution over states, and becomes a one-hot vector in training. "
            "Each state has a probability distribution over answers. The net averages these distributions, weighted "
            "by the probabilities of the states.",
            "Nets are trained for 2,000 steps on strings of 39 or 40 symbols with the answers to all prefixes. The "
            "package calls Sum(5) `sum`, EvenPair(5) `equal-ends` and ModArith(5) `modular-arithmetic`.",
            "Entries of column *paper* are the best of 40 tests at 500 symbols, averaged over five seeds, from Fan "
            "et al. (2024). Their protocol differs from the protocol of this page, so these entries are shown only "
            "for orientation.",
        ),
        cells=[
            Cell(row, "", specs(task.name, {}, preset="machine"), task.published["Ours"]) for row, task in TASKS.items()
        ],
        plan=with_certificates(plan, scale),
    )
