"""Chi et al. (2023), Transformer Working Memory Enables Regular Language Reasoning."""

from collections.abc import Collection

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs
from lengthwise.runs.spec import Settings, merge
from lengthwise.studies.languages import LANGUAGES

SEEDS = (0, 1, 2, 3, 4)


def _our_plan(scale: Scale, *, certificate: bool = False) -> EvaluationPlan:
    """Return the plan that our experiments share, except for certificates, so that equal cells share their runs."""
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
    """Return a cell for each language, by a model whose merge is not learned, with the same goal and budget."""
    of_products = specs._replace(model="block-linear-rnn")
    return [
        Cell(language.row, PRODUCTS, of_products(language.task, {"task": language.fields}, preset="machine"))
        for language in LANGUAGES
    ]


_HEADLINE = (
    "RegularGPT, whose merge is learned, makes no error in {cells[not D_12 | Modular Arithmetic][C=2][solved]} nets of "
    "fifteen tasks, on random strings of 41-500 symbols, and in {cells[D_12 | Modular Arithmetic][C=2][solved]} of "
    "D_12 and modular arithmetic. A tree whose merge is a product of matrices makes none in "
    "{cells[*][products][solved]}, by the same rule of beginning again, and {cells[*][products][level proved]} such "
    "nets are `proved`."
)

_ABOUT_PRODUCTS = (
    "*products*: model `block-linear-rnn` with preset `machine`, on the answers to all prefixes. Each symbol is a "
    "matrix of S x S numbers, S of 16 to 128, whose columns end as one-hot vectors; a node of the tree is the product "
    "of its symbols' matrices. It is the same to the last bit in whatever order it is taken: two by two, in log T "
    "levels, or from left to right, which is how such a net is trained. What a merge does is known from the start, and "
    "symbols alone are learned."
)


@EXPERIMENTS.register("regular-gpt/ours")
def ours(scale: Scale = "small") -> Experiment:
    """Train seventeen regular tasks by preset `fast`, five seeds; a net whose loss is not low begins again."""
    specs = ScaledSpecs(scale, seeds=SEEDS, goal="solved", budget=300)
    return Experiment(
        title="RegularGPT on regular languages, our protocol",
        headline=_HEADLINE,
        about=(
            "Trained at lengths up to 40, measured at 41-500 with final weights; no seed, step or setting selected. A "
            "net whose training loss does not get low is begun again, but after 300 CPU seconds no attempt begins; no "
            "string beyond 40 symbols has a part in that. *C=2*: RegularGPT with preset `fast`, on the final answer "
            "only. *products*: a tree whose merge is not learned but a product of matrices, which makes it a linear "
            "RNN, read as a tree."
        ),
        notes=(
            _ABOUT_PRODUCTS,
            "Recognition tasks draw near misses. The paper's entries (max / mean) are for its own strings, which are "
            "easier to distinguish for D_n and Tomita, and there for lengths 51-100: another protocol, shown for "
            "orientation. What shallow features score on both: `python benchmarks/shallow_features.py`.",
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
            "and {cells[*][*][level extracted]} `extracted`. Nets took {cells[*][*][attempts]} attempts."
        ),
        about=(
            "Model `codebook-gpt`, preset `fast`, three seeds, and five of Tomita 2, 3 and 6; all else as in "
            "`regular-gpt/ours`, but for what begins a net again: its merges end as a finite table, whose entries a "
            "certificate enumerates, and an attempt whose certificate is below `extracted` is followed by another, for "
            "at most 1,200 CPU seconds. A certificate compares a net with the task's machine at every length, and "
            "`regular-gpt/ours` reads training loss alone."
        ),
        notes=(
            "Before the last tenth of the steps the states of the net are closed into classes, without the task's "
            "machine or answers. Their prototypes become codes, and from then on every merged state is replaced by the "
            "nearest code.",
            "D_12 and modular arithmetic, which preset `fast` does not learn, are left out.",
        ),
        cells=_languages(
            specs, left_out=("D_12", "Modular Arithmetic"), more_seeds=("Tomita 2", "Tomita 3", "Tomita 6")
        ),
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/groups")
def groups(scale: Scale = "small") -> Experiment:
    """Train word problems of A_5 and S_5, groups that are not solvable; compiled nets solve them exactly."""
    specs = ScaledSpecs(scale, seeds=(0,))
    larger: Settings = {"model": {"d_model": 128}}
    # At smoke scale strings are too short for some elements.
    common: Settings = {"train": {"lengths": "legal"}} if scale == "smoke" else {}
    return Experiment(
        title="RegularGPT on groups that are not solvable",
        about=(
            "Word problems of A_5 (60 elements) and S_5 (120), two generators each, from the final answer alone. "
            "Preset `fast`, and with D=128; one seed."
        ),
        notes=(
            "The answer is the element; the position of one point would be less to learn.",
            "`lengthwise compile` writes down weights that solve A_5 at every length; here it is learned.",
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
            "By this protocol larger chunks lose little: without an error are {cells[Parity][*][solved]} nets of "
            "parity with C=2, 3 or 4, {cells[Cycle Navigation][C=2 | C=3][solved]} of cycle navigation with C=2 or 3, "
            "and {cells[Cycle Navigation][C=4][solved]} with C=4 ({cells[Cycle Navigation][C=4][lowest]} at the lowest "
            "up to 500). The paper's entries with C=3 are {cells[Parity][C=3][paper]} and {cells[Cycle "
            "Navigation][C=3][paper]}."
        ),
        about=(
            "Preset `fast`, balanced lengths only. With C=4 a net has D=128 and takes 8,000 steps of 256 strings: on "
            "cycle navigation one with D=64 always mistakes the rarest windows, those whose four parts all say +2 or "
            "all -2. Our protocol; the paper's column is max / mean of its runs."
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
            "Strings of operators and digits modulo 5 that begin with a +. Preset `fast` but for: D=128, 16,000 steps "
            "of 256 strings, balanced lengths that grow on success, rate 0.005 for the matrices, pads inside in 70 % "
            "of the batches and in front in 10 %, state noise 0.05 and then 0.2. With answers to all prefixes a batch "
            "has 64 strings, which cost about as much, and 10 % of the batches have pads inside. Our protocol; the "
            "paper's column is max / mean of its runs, final answers only."
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
        about="even-pairs; the row says what is left out.",
        notes=(
            "Not left out here, so that nothing is known of what they bring: the merge layer, Muon, the activation, "
            "the start of the heads, and states compared late in training.",
        ),
        cells=[Cell(name, "C=2", specs("even-pairs", {"train": changes})) for name, changes in left_out.items()],
        plan=_our_plan(scale, certificate=True),
    )


@EXPERIMENTS.register("regular-gpt/contraction")
def contraction(scale: Scale = "small") -> Experiment:
    """Measure the cost of contracting states to points, which proofs need, by late noise and by comparing states."""
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
            "Without one of its two parts or both, {cells[*][not preset fast][level extracted]} nets have a machine "
            "that is right (`extracted`), and {cells[*][not preset fast][level proved]} are proved; with contraction "
            "{cells[*][preset fast][level proved]} are `proved` and {cells[*][preset fast][level refuted]} refuted."
        ),
        about=(
            "In the second half of its steps preset `fast` raises the noise of states from 0.1 to 0.3 and compares the "
            "states of a string with and without pads, so that states become points. Neither uses any answer. The "
            "steps are the same in all columns: see after how many a net was solved, what a step costs, and which "
            "certificates the nets have."
        ),
        notes=(
            "The nets of column *preset fast* on record were trained by later code than the others, whose steps take "
            "less time: do not compare CPU seconds.",
        ),
        cells=[
            Cell(task, column, specs(task, changes))
            for task in ("even-pairs", "cycle-navigation")
            for column, changes in columns.items()
        ],
        plan=_our_plan(scale, certificate=True),
    )
