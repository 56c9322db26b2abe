"""Experiments on RegularGPT by our protocol (Chi et al., 2023, Transformer Working Memory Enables Regular Language
Reasoning and Natural Language Length Extrapolation)."""

from collections.abc import Collection

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs
from lengthwise.runs.spec import Settings, merge
from lengthwise.studies.languages import LANGUAGES

SEEDS = (0, 1, 2, 3, 4)


def _our_plan(scale: Scale, *, certificate: bool = False) -> EvaluationPlan:
    """Return the evaluation plan that experiments in this file share, so that equal cells have the same runs."""
    plan = SMOKE_PLAN if scale == "smoke" else EvaluationPlan(dense_strings=128, long=((1_000, 256), (10_000, 64)))
    return plan.model_copy(update={"certificate": certificate})


def _languages(specs: ScaledSpecs, *, left_out: Collection[str] = (), more_seeds: Collection[str] = ()) -> list[Cell]:
    """Return a cell for each language, with the settings of the preset. Rows in `more_seeds` have five seeds."""
    cells = []
    for language in LANGUAGES:
        if language.row not in left_out:
            specs_of_row = specs._replace(seeds=SEEDS) if language.row in more_seeds else specs
            made = specs_of_row(language.task, {"task": language.fields})
            cells.append(Cell(language.row, "C=2", made, language.published.chunks_of_2))
    return cells


PRODUCTS = "products"
"""The name of the column of nets whose merge is a product of matrices."""


def _products(specs: ScaledSpecs) -> list[Cell]:
    """Return a cell for each language: a model that merges by matrix products, with the goal and seeds of `specs`."""
    of_products = specs._replace(model="block-linear-rnn")
    return [
        Cell(language.row, PRODUCTS, of_products(language.task, {"task": language.fields}, preset="machine"))
        for language in LANGUAGES
    ]


_HEADLINE = (
    "On fifteen regular tasks, {cells[not D_12 | Modular Arithmetic][C=2][solved]} nets of RegularGPT make no error "
    "on random strings of 41-500 symbols; on two further tasks, D_12 and modular arithmetic, "
    "{cells[D_12 | Modular Arithmetic][C=2][solved]} nets make no error.\n"
    "If nets merge states by a product of matrices (column *products*), {cells[*][products][solved]} make no error, "
    "and {cells[*][products][level proved]} are `proved`. In both columns, a run trains another net if the training "
    "loss stays high (see the notes)."
)

_ABOUT_PRODUCTS = (
    "*products*: model `block-linear-rnn` with preset `machine`, trained on the answers to all prefixes. Each symbol "
    "has a learned matrix of S x S numbers, with S from 16 to 128, and the columns of this matrix become one-hot "
    "vectors. A node of the tree is the product of the matrices of its symbols. So the merge is given, and only the "
    "matrices are learned. In training, the product is computed from left to right. If it is computed in a tree with "
    "log T levels, the result is the same bit for bit."
)


@EXPERIMENTS.register("regular-gpt/ours")
def ours(scale: Scale = "small") -> Experiment:
    """Train RegularGPT on seventeen regular tasks with preset `fast`, until the final loss is low; five seeds."""
    specs = ScaledSpecs(scale, seeds=SEEDS, goal="solved", budget=300)
    return Experiment(
        title="RegularGPT on regular languages, our protocol",
        headline=_HEADLINE,
        about=(
            "Nets are trained at lengths up to 40, and their final weights are measured at lengths 41-500. No seed, "
            "step or setting is selected.\n"
            "Column *C=2* is RegularGPT, which merges two states at a time in a tree, by a learned merge. In column "
            "*products*, the merge is a product of matrices, so the net is a linear RNN that can be computed as a tree."
        ),
        notes=(
            "*C=2* is trained with preset `fast`, on final answers only. If the training loss does not become low, "
            "another net is trained, unless 300 CPU seconds have passed. No string longer than 40 symbols is used for "
            "this decision.",
            _ABOUT_PRODUCTS,
            "In tasks of recognition, most strings outside the language are near misses, which differ little from "
            "strings in the language. Column *paper* has the maximum / mean accuracy of the runs of Chi et al. "
            "(2023) on the paper's strings. On D_n and Tomita, the paper's strings are easier, and have 51-100 "
            "symbols. Because the paper's protocol is different, the entries of column *paper* are shown only for "
            "orientation. `python benchmarks/shallow_features.py` computes the scores of shallow features on the "
            "paper's strings and on ours.",
        ),
        cells=[cell for of_row in zip(_languages(specs), _products(specs), strict=True) for cell in of_row],
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/codebook")
def codebook(scale: Scale = "small") -> Experiment:
    """Train RegularGPT on fifteen tasks; in the last tenth of training, states become entries of a codebook."""
    specs = ScaledSpecs(scale, seeds=SEEDS[:3], model="codebook-gpt", goal="extracted", budget=1_200)
    return Experiment(
        title="RegularGPT with a codebook of states, our protocol",
        headline=(
            "In {cells[*][*][solved]} runs, RegularGPT with a codebook of states makes no error at the scored "
            "lengths; {cells[*][*][level proved]} nets are `proved` and {cells[*][*][level extracted]} are "
            "`extracted`.\n"
            "Each run trained {cells[*][*][attempts]} nets, one after another, and its last net is measured."
        ),
        about=(
            "RegularGPT merges pairs of states in a tree. At the end of training, the merge of model `codebook-gpt` "
            "is a finite table, and a certificate checks every entry of this table.\n"
            "If the level of the certificate is below `extracted`, another net is trained, unless 1,200 CPU seconds "
            "have passed."
        ),
        notes=(
            "Nets are trained with preset `fast` and three seeds (Tomita 2, 3 and 6: five seeds). The protocol is the "
            "same as in `regular-gpt/ours`, except for the rule that decides whether another net is trained. Here a "
            "certificate decides, which compares the net with the task's machine at every length. In "
            "`regular-gpt/ours`, the training loss alone decides.",
            "Before the last tenth of the steps, the states of the net are grouped into classes, without the task's "
            "machine or answers. Each class has a prototype, a state that represents the class. The prototypes become "
            "the codes. From then on, every merged state is replaced by the nearest code.",
            "D_12 and modular arithmetic are left out, because preset `fast` does not learn them.",
        ),
        cells=_languages(
            specs, left_out=("D_12", "Modular Arithmetic"), more_seeds=("Tomita 2", "Tomita 3", "Tomita 6")
        ),
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/groups")
def groups(scale: Scale = "small") -> Experiment:
    """Train RegularGPT on the word problems of A_5 and S_5, two groups that are not solvable."""
    specs = ScaledSpecs(scale, seeds=(0,))
    larger: Settings = {"model": {"d_model": 128}}
    # At smoke scale strings are too short for some elements.
    common: Settings = {"train": {"lengths": "legal"}} if scale == "smoke" else {}
    return Experiment(
        title="RegularGPT on groups that are not solvable",
        headline=(
            "On the word problem of group A_5, RegularGPT makes no error in {cells[A5][D=128][solved]} runs with "
            "width 128 and in {cells[A5][D=64][solved]} runs with width 64; on the word problem of S_5, it makes no "
            "error in {cells[S5][*][solved]} runs."
        ),
        about=(
            "A string is a sequence of generators of the group, and its answer is their product. The groups A_5 (60 "
            "elements) and S_5 (120 elements) have two generators each. Only final answers are supervised.\n"
            "Nets are trained with preset `fast`, with width D=64 or D=128, and with one seed."
        ),
        notes=(
            "The answer is an element of the group, which is a permutation. A task that asks only to which point "
            "this permutation maps a given point would be easier.",
            "`lengthwise compile` writes weights that solve A_5 at every length. Here the weights are learned.",
        ),
        cells=[
            Cell(name, column, specs("word-problem", merge({"task": {"group": name}}, merge(common, changes))))
            for name in ("A5", "S5")
            for column, changes in {"D=64": {}, "D=128": larger}.items()
        ],
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/chunk-sizes")
def chunk_sizes(scale: Scale = "small") -> Experiment:
    """Compare chunk sizes 2, 3 and 4 on parity and cycle navigation (paper's means at size 3: 88.7 and 78.6 %)."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2, 3, 4))
    balanced: Settings = {"train": {"lengths": "balanced"}}
    larger: Settings = {"model": {"d_model": 128}, "train": {"steps": 8000, "batch_size": 256}}
    cells = []
    for language in LANGUAGES[1:3]:
        entries = {2: language.published.chunks_of_2, 3: language.published.chunks_of_3, 4: ""}
        for chunk_size, published in entries.items():
            settings: Settings = {"task": language.fields, "model": {"chunk_size": chunk_size}}
            settings = merge(balanced, merge(settings, larger if chunk_size == 4 else {}))
            cells.append(Cell(language.row, f"C={chunk_size}", specs(language.task, settings), published))
    return Experiment(
        title="RegularGPT with larger chunks",
        headline=(
            "If RegularGPT merges C = 3 or 4 states at a time instead of 2, it loses little accuracy: on parity, "
            "{cells[Parity][*][solved]} nets with C = 2, 3 or 4 make no error at lengths 41-500.\n"
            "On cycle navigation, {cells[Cycle Navigation][C=2 | C=3][solved]} nets with C=2 or 3 make no error, and "
            "{cells[Cycle Navigation][C=4][solved]} with C=4. The lowest accuracy with C=4 at any length up to 500 "
            "is {cells[Cycle Navigation][C=4][lowest]}.\n"
            "With C=3, the maximum / mean accuracies of the runs of Chi et al. (2023) are "
            "{cells[Parity][C=3][paper]} on parity and {cells[Cycle Navigation][C=3][paper]} on cycle navigation."
        ),
        about=(
            "Nets are trained with preset `fast`, at lengths at which every answer is possible. Column *paper* has the "
            "maximum / mean of the paper's runs, by another protocol."
        ),
        notes=(
            "With C=4, a net has width 128 and is trained for 8,000 steps of 256 strings. On cycle navigation, a "
            "state of the net represents a move on the cycle. With C=4 and width 64, a net always merges four states "
            "wrongly if all four moves are +2, or all four are -2, the rarest groups of moves.",
        ),
        cells=cells,
        plan=_our_plan(scale),
    )


@EXPERIMENTS.register("regular-gpt/modular-arithmetic")
def modular_arithmetic(scale: Scale = "small") -> Experiment:
    """Train RegularGPT on modular arithmetic with operator precedence, on final answers or answers to all prefixes."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2, 3, 4))
    settings: Settings = {
        "task": {"leading_plus": True},
        "model": {"d_model": 128},
        "train": {
            "steps": 16_000,
            "batch_size": 256,
            "lengths": "balanced",
            "length_sampling": "growing",
            "late_consistency": 1.0,
            "optimizer": {"matrix_learning_rate": 0.005},
            "augmentation": {
                "padding": 0.7,
                "pads_per_symbol": 3.0,
                "leading_padding": 0.1,
                "state_noise": 0.05,
                "late_state_noise": 0.2,
            },
        },
    }
    every_prefix: Settings = {"train": {"supervision": "prefix", "batch_size": 64, "augmentation": {"padding": 0.1}}}
    published = LANGUAGES[-1].published.chunks_of_2
    return Experiment(
        title="RegularGPT on modular arithmetic with precedence",
        about=(
            "Nets learn to evaluate expressions of digits and operators modulo 5, which begin with a +. They are "
            "trained on final answers, or on the answers to all prefixes."
        ),
        notes=(
            "Nets have preset `fast`, width 128, 16,000 steps of 256 strings, and a learning rate of 0.005 for "
            "matrices. Training uses lengths at which every answer is possible, and lengths grow with success. 70 % "
            "of the batches have pads inside strings, and 10 % have pads in front of strings. The noise on states is "
            "0.05, and later 0.2.",
            "With answers to all prefixes, a batch has 64 strings, which cost about as much as 256 strings with final "
            "answers, and 10 % of the batches have pads inside strings.",
            "The protocol is ours. Column *paper* has the maximum / mean accuracy of the paper's runs, for final "
            "answers.",
        ),
        cells=[
            Cell("Modular Arithmetic", "final answer", specs("modular-arithmetic", settings), published),
            Cell("Modular Arithmetic", "all prefixes", specs("modular-arithmetic", merge(settings, every_prefix))),
        ],
        plan=_our_plan(scale),
    )


@EXPERIMENTS.register("regular-gpt/ablation")
def ablation(scale: Scale = "small") -> Experiment:
    """Train RegularGPT on even-pairs, each time without one ingredient of preset `fast`; five seeds."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2, 3, 4))
    left_out: dict[str, Settings] = {
        "nothing": {},
        "short strings first": {"length_sampling": "uniform"},
        "stronger noise late": {"augmentation": {"late_state_noise": 0.1}},
        "all noise": {"augmentation": {"state_noise": 0.0, "late_state_noise": 0.0}},
        "pads in front": {"augmentation": {"leading_padding": 0.0}},
        "pads inside": {"augmentation": {"padding": 0.0}},
        "averaged weights": {"ema_decay": 0.0},
    }
    return Experiment(
        title="Ablation of preset `fast`",
        about=(
            "RegularGPT is trained on even pairs with preset `fast`, and each row of the table leaves out one "
            "ingredient of this preset."
        ),
        notes=(
            "Row *nothing* has the complete preset. The merge layer, Muon, the activation, the initialization of the "
            "attention heads, and the late comparison of states are always included, so their effect is not measured "
            "here.",
        ),
        cells=[Cell(name, "C=2", specs("even-pairs", {"train": changes})) for name, changes in left_out.items()],
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/contraction")
def contraction(scale: Scale = "small") -> Experiment:
    """Measure the cost of contracting states, which proofs need: train with both parts of the method, one, or none."""
    specs = ScaledSpecs(scale, seeds=(0, 1))
    not_compared: Settings = {"train": {"late_consistency": 0.0}}
    columns: dict[str, Settings] = {
        "preset fast": {},
        "states not compared": not_compared,
        "nor noisier late": merge(not_compared, {"train": {"augmentation": {"late_state_noise": 0.1}}}),
    }
    return Experiment(
        title="The cost of contracting states",
        headline=(
            "If training contracts the states of RegularGPT to points, {cells[*][preset fast][level proved]} nets "
            "are `proved` and {cells[*][preset fast][level refuted]} `refuted`.\n"
            "If training leaves out one or both parts of the contraction (see the next item), "
            "{cells[*][not preset fast][level extracted]} nets are `extracted`: the machine that is read off the net "
            "is right. But {cells[*][not preset fast][level proved]} nets are `proved`."
        ),
        about=(
            "The contraction has two parts, both in the second half of training with preset `fast`. The noise on "
            "states rises from 0.1 to 0.3, and a loss compares the states of a string with and without pads."
        ),
        notes=(
            "Neither the noise nor the comparison uses answers of the task. Column *states not compared* leaves out "
            "the comparison, and column *nor noisier late* also leaves out the rise of the noise. All nets are "
            "trained for the same number of steps. To compare the columns, use *at step* (in the last section) and "
            "the certificates.",
            "The recorded nets of column *preset fast* were trained by later code than the other nets, and their "
            "steps take a different time. So the CPU seconds of this column cannot be compared with the CPU seconds "
            "of the other columns.",
        ),
        cells=[
            Cell(task, column, specs(task, changes))
            for task in ("even-pairs", "cycle-navigation")
            for column, changes in columns.items()
        ],
        plan=_our_plan(scale, certificate=True),
    )
