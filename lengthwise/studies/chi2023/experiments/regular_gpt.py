"""Chi et al. (2023), Transformer Working Memory Enables Regular Language Reasoning."""

from collections.abc import Collection

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs
from lengthwise.runs.spec import Settings, merge
from lengthwise.studies.languages import LANGUAGES

SEEDS = (0, 1, 2, 3, 4)


def _our_plan(scale: Scale, *, certificate: bool = False) -> EvaluationPlan:
    """Return the plan that our experiments share, with or without certificates; equal cells then share their runs."""
    plan = SMOKE_PLAN if scale == "smoke" else EvaluationPlan(dense_strings=128, long=((1_000, 256), (10_000, 64)))
    return plan.model_copy(update={"certificate": certificate})


def _languages(specs: ScaledSpecs, *, left_out: Collection[str] = (), more_seeds: Collection[str] = ()) -> list[Cell]:
    """Return a cell for each language with the preset's settings; rows in `more_seeds` have five seeds."""
    cells = []
    for language in LANGUAGES:
        if language.row not in left_out:
            specs_of_row = specs._replace(seeds=SEEDS) if language.row in more_seeds else specs
            made = specs_of_row(language.task, {"task": language.fields})
            cells.append(Cell(language.row, "C=2", made, language.published.chunks_of_2))
    return cells


PRODUCTS = "products"
"""The column of trees whose merge is a product of matrices."""


def _products(specs: ScaledSpecs) -> list[Cell]:
    """Return a cell for each language, with the model whose merge is not learned and the same goal and budget."""
    of_products = specs._replace(model="block-linear-rnn")
    return [
        Cell(language.row, PRODUCTS, of_products(language.task, {"task": language.fields}, preset="machine"))
        for language in LANGUAGES
    ]


_HEADLINE = (
    "On fifteen tasks, {cells[not D_12 | Modular Arithmetic][C=2][solved]} nets of RegularGPT make no error on random "
    "strings of 41-500 symbols; on D_12 and modular arithmetic, {cells[D_12 | Modular Arithmetic][C=2][solved]} do.\n"
    "With a product of matrices as the merge, {cells[*][products][solved]} nets make no error, and "
    "{cells[*][products][level proved]} are `proved`. Both kinds of nets are trained again by the same rule."
)

_ABOUT_PRODUCTS = (
    "*products*: model `block-linear-rnn` with preset `machine`, trained on the answers to all prefixes. Each symbol "
    "has a matrix of S x S numbers, with S from 16 to 128, whose columns become one-hot vectors. A node of the tree is "
    "the product of its symbols' matrices. The product has the same bits in any order: two by two in log T levels, or "
    "from left to right, as in training. So the merge is given, and only the symbols' matrices are learned."
)


@EXPERIMENTS.register("regular-gpt/ours")
def ours(scale: Scale = "small") -> Experiment:
    """Train seventeen regular tasks by preset `fast`, five seeds, and train again while the final loss is not low."""
    specs = ScaledSpecs(scale, seeds=SEEDS, goal="solved", budget=300)
    return Experiment(
        title="RegularGPT on regular languages, our protocol",
        headline=_HEADLINE,
        about=(
            "Nets are trained at lengths up to 40 and measured at 41-500 with final weights; no seed, step or setting "
            "is selected.\n"
            "*C=2*: RegularGPT, with a learned merge. *products*: the merge is a product of matrices, so the net is a "
            "linear RNN that can be computed as a tree."
        ),
        notes=(
            "*C=2* has preset `fast`, trained on the final answer only. If the training loss does not become low, "
            "training "
            "starts again, but not after 300 CPU seconds. No string longer than 40 symbols is used for this decision.",
            _ABOUT_PRODUCTS,
            "Recognition tasks draw near misses. The paper's entries (max / mean) are for the paper's strings, which "
            "are easier for D_n and Tomita, and for lengths 51-100 on these tasks. This is a different protocol, and "
            "the entries are shown for orientation. `python benchmarks/shallow_features.py` computes the scores of "
            "shallow features on both.",
        ),
        cells=[cell for of_row in zip(_languages(specs), _products(specs), strict=True) for cell in of_row],
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/codebook")
def codebook(scale: Scale = "small") -> Experiment:
    """Train the tasks that preset `fast` learns, with states moved to codes in the last tenth of training."""
    specs = ScaledSpecs(scale, seeds=SEEDS[:3], model="codebook-gpt", goal="extracted", budget=1_200)
    return Experiment(
        title="RegularGPT with a codebook of states, our protocol",
        headline=(
            "{cells[*][*][solved]} nets make no error at the lengths scored: {cells[*][*][level proved]} are `proved` "
            "and {cells[*][*][level extracted]} `extracted`.\n"
            "Runs took {cells[*][*][attempts]} attempts."
        ),
        about=(
            "At the end of training, the merge of `codebook-gpt` is a finite table, and a certificate checks every "
            "entry.\n"
            "If a certificate is below `extracted`, another attempt follows, until 1,200 CPU seconds have passed."
        ),
        notes=(
            "Preset `fast` with three seeds, and five seeds for Tomita 2, 3 and 6. The protocol is the one of "
            "`regular-gpt/ours`, except for the rule of training again. Here a certificate decides: it compares a net "
            "with the task's machine at every length. In `regular-gpt/ours` the training loss alone decides.",
            "Before the last tenth of the steps, the states of the net are grouped into classes, without the task's "
            "machine or answers. The prototype of each class becomes a code. From then on the nearest code replaces "
            "every merged state.",
            "D_12 and modular arithmetic are left out, because preset `fast` does not learn them.",
        ),
        cells=_languages(
            specs, left_out=("D_12", "Modular Arithmetic"), more_seeds=("Tomita 2", "Tomita 3", "Tomita 6")
        ),
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/groups")
def groups(scale: Scale = "small") -> Experiment:
    """Train word problems of A_5 and S_5, groups that are not solvable."""
    specs = ScaledSpecs(scale, seeds=(0,))
    larger: Settings = {"model": {"d_model": 128}}
    # At smoke scale strings are too short for some elements.
    common: Settings = {"train": {"lengths": "legal"}} if scale == "smoke" else {}
    return Experiment(
        title="RegularGPT on groups that are not solvable",
        about=(
            "Nets are trained on the word problems of A_5 (60 elements) and S_5 (120), with two generators each, from "
            "the final answer alone.\n"
            "Preset `fast` with D=64 and with D=128; one seed."
        ),
        notes=(
            "The answer is the group element. A task that asks only where one point goes would be easier.",
            "`lengthwise compile` writes weights that solve A_5 at every length; here they are learned.",
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
    """Compare chunks of 2, 3 and 4 symbols on parity and cycle navigation (the paper's means at C=3: 88.7 and 78.6)."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2, 3, 4))
    balanced: Settings = {"train": {"lengths": "balanced"}}
    larger: Settings = {"model": {"d_model": 128}, "train": {"steps": 8000, "batch_size": 256}}
    cells = []
    for language in LANGUAGES[1:3]:
        for chunk_size, published in (
            (2, language.published.chunks_of_2),
            (3, language.published.chunks_of_3),
            (4, ""),
        ):
            settings: Settings = {"task": language.fields, "model": {"chunk_size": chunk_size}}
            settings = merge(balanced, merge(settings, larger if chunk_size == 4 else {}))
            cells.append(Cell(language.row, f"C={chunk_size}", specs(language.task, settings), published))
    return Experiment(
        title="RegularGPT with larger chunks",
        headline=(
            "Larger chunks lose little by this protocol: {cells[Parity][*][solved]} nets of parity with C=2, 3 or 4 "
            "make no error.\n"
            "On cycle navigation {cells[Cycle Navigation][C=2 | C=3][solved]} nets with C=2 or 3 make no error, and "
            "{cells[Cycle Navigation][C=4][solved]} with C=4 ({cells[Cycle Navigation][C=4][lowest]} at the lowest up "
            "to 500).\n"
            "The paper's entries with C=3 are {cells[Parity][C=3][paper]} and {cells[Cycle Navigation][C=3][paper]}."
        ),
        about="Preset `fast`, balanced lengths only, by our protocol; the paper's column is max / mean of its runs.",
        notes=(
            "With C=4 a net has D=128 and takes 8,000 steps of 256 strings. On cycle navigation a net with D=64 always "
            "mistakes the rarest windows, whose four parts are all +2 or all -2.",
        ),
        cells=cells,
        plan=_our_plan(scale),
    )


@EXPERIMENTS.register("regular-gpt/modular-arithmetic")
def modular_arithmetic(scale: Scale = "small") -> Experiment:
    """Train modular arithmetic with precedence from the final answer or from the answers to all prefixes."""
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
            "Nets learn to evaluate strings of operators and digits modulo 5 that begin with a +, from the final "
            "answer or from all prefixes."
        ),
        notes=(
            "Preset `fast` with D=128, 16,000 steps of 256 strings, balanced lengths that grow on success, and a rate "
            "of 0.005 for the matrices. Pads are inside in 70 % of the batches and in front in 10 %. State noise is "
            "0.05 and then 0.2.",
            "With answers to all prefixes a batch has 64 strings, which cost about as much, and 10 % of the batches "
            "have pads inside.",
            "Our protocol; the paper's column is max / mean of its runs, final answers only.",
        ),
        cells=[
            Cell("Modular Arithmetic", "final answer", specs("modular-arithmetic", settings), published),
            Cell("Modular Arithmetic", "all prefixes", specs("modular-arithmetic", merge(settings, every_prefix))),
        ],
        plan=_our_plan(scale),
    )


@EXPERIMENTS.register("regular-gpt/ablation")
def ablation(scale: Scale = "small") -> Experiment:
    """Train even-pairs with one ingredient of preset `fast` left out at a time, five seeds each."""
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
        about="Each row leaves out one ingredient of preset `fast` on even-pairs.",
        notes=(
            "The merge layer, Muon, the activation, the initialization of the heads, and the late comparison of "
            "states are always included, so their effect is not measured here.",
        ),
        cells=[Cell(name, "C=2", specs("even-pairs", {"train": changes})) for name, changes in left_out.items()],
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/contraction")
def contraction(scale: Scale = "small") -> Experiment:
    """Measure the cost of contracting states, which proofs need: with and without late noise and compared states."""
    specs = ScaledSpecs(scale, seeds=(0, 1))
    not_compared: Settings = {"train": {"late_consistency": 0.0}}
    columns: dict[str, Settings] = {
        "preset fast": {},
        "states not compared": not_compared,
        "nor noisier late": merge(not_compared, {"train": {"augmentation": {"late_state_noise": 0.1}}}),
    }
    return Experiment(
        title="What contraction costs",
        headline=(
            "With contraction {cells[*][preset fast][level proved]} nets are `proved` and {cells[*][preset fast][level "
            "refuted]} refuted.\n"
            "Without one or both of its two parts, {cells[*][not preset fast][level extracted]} nets are `extracted`: "
            "their machine is right. {cells[*][not preset fast][level proved]} of these nets are proved."
        ),
        about=(
            "In the second half of its steps, preset `fast` contracts states to points. It does so in two ways: the "
            "noise on states rises from 0.1 to 0.3, and a loss compares the states of a string with and without pads."
        ),
        notes=(
            "Neither part uses any answer. All columns take the same number of steps. Compare the step after which a "
            "net was solved, the cost of a step, and the certificates.",
            "The recorded nets of column *preset fast* were trained by later code than the other nets, and their steps "
            "take another time. So CPU seconds cannot be compared between columns.",
        ),
        cells=[
            Cell(task, column, specs(task, changes))
            for task in ("even-pairs", "cycle-navigation")
            for column, changes in columns.items()
        ],
        plan=_our_plan(scale, certificate=True),
    )
