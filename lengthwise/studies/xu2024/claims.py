"""The claims of Xu and Sato (2024)."""

from collections.abc import Iterator
from types import MappingProxyType

from lengthwise.experiment import EXPERIMENTS
from lengthwise.studies.claims.claim import (
    CLAIMS,
    Claim,
    Effect,
    Entry,
    Paper,
    Phrase,
    Stated,
    TableNumber,
    Unrun,
    small_perplexities,
)

_TABLE_1, _TABLE_2, _DEEP_TREES = "looped/table-1", "looped/table-2", "looped/trees"

_TABLE_1_PAGE, _FIGURE_5 = "results/looped-table-1.md", "results/looped-figure-5.md"

_TREES = "depth 2, 5 dimensions, 26 points"
_APPROXIMATION, _PROPOSITIONS, _STEPS, _NETWORK, _MODULI, _MODEL, _BATCHES = (
    "tests/constructions/test_looped_approximation.py",
    "tests/constructions/test_looped_propositions.py",
    "tests/constructions/test_looped_steps.py",
    "tests/constructions/test_looped_network.py",
    "tests/analysis/test_continuity.py",
    "tests/models/test_looped_transformer.py",
    "tests/training/test_batches.py",
)


@CLAIMS.register("xu2024")
def xu2024() -> Paper:
    """Looped transformers."""
    return Paper(
        "Xu and Sato (2024), On Expressive Power of Looped Transformers",
        [*_THEORY, *_ENCODING, *_entries(), *_EFFECTS, *_of_trees(), *_REST],
        MappingProxyType(
            {
                _TABLE_1: (
                    "strings of 12 of 4 letters for 60 and 100 of 26, width 64 for 256, 500 to 4,000 steps for 781,250"
                ),
                _TABLE_2: "trees of depth 2 in 5 dimensions for 4 in 20, width 64 for 256, 3,000 steps for 200,000",
                _DEEP_TREES: (
                    "width 64 for 256, 5 loops or layers for 12, 8,000 steps of 16 prompts for 200,000 of 64, one "
                    "seed, timestep with SiLU for GELU: no net has learned anything"
                ),
            }
        ),
        MappingProxyType({_TABLE_1: "a GPU: 3 x 10^16 to 8 x 10^18 operations a net"}),
    )


def _built(section: str, claim: str, test: str, why: str = "") -> Claim:
    return Claim(section, claim, Stated("reproduced", "looped.md", test, why=why))


def _error(network: str, column: str) -> TableNumber:
    return TableNumber("results/looped-approximation.md", column, (network, "16"))


_BENCHMARK = "python benchmarks/looped_approximation.py"

_THEORY = (
    _built("2, eq. (1)-(6)", "Attention, feed-forward layer, block and loop.", _NETWORK),
    _built(
        "Def. 3.1",
        "Continuous functions that permute outputs as inputs are permuted.",
        _APPROXIMATION,
        "others are rejected",
    ),
    _built("Def. 3.2", "Contextual mappings.", _STEPS),
    _built("Def. 3.3", "The L^p norm of a function.", _PROPOSITIONS, "errors for p = 1, 1.5, 2 and 4"),
    _built("Def. 3.4-3.6", "Moduli of sequence, contextual and token continuity.", _MODULI),
    Claim(
        "Theorem 3.7",
        "One block of fixed size, looped, has an error within the bound.",
        Stated(
            "reproduced",
            "results/looped-approximation.md",
            command=_BENCHMARK,
            numbers=(_error("one block", "L² error"), _error("one block", "bound")),
            why="error and bound of one function at δ = 1/16; by a smaller network than the proof's",
        ),
    ),
    Claim(
        "Corollary 3.8",
        "Looped transformers are dense.",
        Stated(
            "not decided",
            "results/looped-approximation.md",
            command=_BENCHMARK,
            numbers=(_error("one block", "loops"), _error("one block", "L² error")),
            why="the most loops that were run, and the error there; a limit is not run",
        ),
    ),
    _built("3.3", "Parameters depend neither on loops nor on δ.", _APPROXIMATION),
    Claim(
        "3.3",
        "The exponential rate is unavoidable (Yarotsky, 2018).",
        Unrun("nothing to run: a theorem on all networks, which the paper cites"),
    ),
    _built("3.4", "A single block suffices for all steps.", _APPROXIMATION),
    _built("Lemma A.4", "Quantization by one feed-forward layer in 1/δ - 1 loops.", _STEPS),
    _built("Lemma A.5", "Contextual mapping by one head in T loops.", _STEPS),
    _built("Corollary A.6", "The same with unused numbers left between.", _STEPS),
    _built("Prop. A.1", "Rectangular functions of four ReLUs.", _PROPOSITIONS, "here thresholds take their part"),
    _built("Prop. A.2", "Step functions of two ReLUs.", _NETWORK),
    _built("Prop. A.3", "Impulse functions of four ReLUs.", _NETWORK),
    _built("Prop. A.7", "Bit extraction by two layers (Zhang et al.).", _PROPOSITIONS, "here one layer does"),
    _built("Lemma A.8", "Bit extraction by one layer.", _STEPS),
    _built("Lemma 4.1", "Values are remembered up to their largest difference.", _STEPS),
    Claim(
        "Fig. 1, 3, 4",
        "Figures of the proof: perturbations, outline, quantizer.",
        Unrun("nothing to run: drawings of what is built above"),
    ),
)

_ENCODING = (
    _built("Theorem 4.2", "With a factor for each loop any values are remembered exactly.", _STEPS),
    Claim(
        "4.1",
        "Factors remove the dependence on token and contextual continuity.",
        Stated(
            "reproduced",
            "results/looped-approximation.md",
            command=_BENCHMARK,
            numbers=(_error("one block", "different tokens alone"), _error("with factors", "different tokens alone")),
            why="error on different tokens at δ = 1/16, without and with; over all cubes they are worse up to 1/6",
        ),
    ),
    _built("4.2", "Timestep encoding: gains and gates from the number of the loop.", _MODEL),
    Claim("Fig. 2", "The architecture of timestep encoding, drawn.", Unrun("nothing to run: a drawing of 4.2")),
)


def _entries() -> Iterator[Claim]:
    """The printed entries of Table 1, at the paper's sizes."""
    for cell in EXPERIMENTS[_TABLE_1]("paper").cells:
        if cell.published:
            entry = Entry(_TABLE_1, cell.row, cell.column, ("mean",), scale="paper")
            yield Claim("Table 1", f"{cell.row}, {cell.column}.", entry)


def _of_trees() -> Iterator[Claim]:
    """Those of Table 2, by small nets on the paper's trees; the names are those of its nets."""
    printed = [cell for cell in EXPERIMENTS[_TABLE_2]("paper").cells if cell.published]
    ours = [cell for cell in EXPERIMENTS[_DEEP_TREES]("small").cells if cell.published]
    for theirs, cell in zip(printed, ours, strict=True):
        yield Claim("Table 2", f"{theirs.row}, {theirs.column}.", Entry(_DEEP_TREES, cell.row, cell.column, ("error",)))


_EFFECTS = (
    Claim(
        "5.1",
        "More loops help on LCS.",
        Effect(_TABLE_1, "LCS (12)", "timestep, R=10", "timestep, R=5", "timestep, R=10"),
        "80.5; 68.5",
    ),
    Claim(
        "5.1",
        "More loops help on ED.",
        Effect(_TABLE_1, "ED (12)", "timestep, R=10", "timestep, R=5", "timestep, R=10"),
        "38.9; 26.6",
    ),
    Claim(
        "5.1",
        "Some tasks take many loops, others few.",
        Stated(
            "not decided",
            _TABLE_1_PAGE,
            command="lengthwise reproduce looped/table-1",
            numbers=tuple(
                TableNumber(_TABLE_1_PAGE, "mean", (row, f"timestep, R={loops}"))
                for row, counts in (("LCS (6)", (5, 50, 100)), ("Knapsack (8)", (2, 5, 10)))
                for loops in counts
            ),
            why="LCS (6) with timestep at 5, 50 and 100 loops, the knapsack at 2, 5 and 10; three small nets each",
        ),
    ),
    Claim(
        "5.1",
        "With timestep encoding ED gains from more loops without saturation.",
        Stated(
            "not decided",
            _TABLE_1_PAGE,
            command="lengthwise reproduce looped/table-1",
            numbers=tuple(
                TableNumber(_TABLE_1_PAGE, "mean", ("ED (12)", f"timestep, R={loops}")) for loops in (2, 5, 10)
            ),
            why="at 2, 5 and 10 loops; three small nets each, the paper's are for 5 to 100",
        ),
        "26.6, 38.9, 57.3, 88.3",
    ),
    Claim(
        "5.1",
        "Timestep encoding helps on ED, against the plain loop.",
        Effect(_TABLE_1, "ED (12)", "timestep, R=10", "plain loop, R=10", "timestep, R=10"),
        "38.9; 32.6 (R=10), 88.3; 47.7 (R=100)",
    ),
    Claim(
        "5.1",
        "Loops solve what a Transformer does not, on ED.",
        Effect(_TABLE_1, "ED (12)", "timestep, R=5", "transformer, L=5", "timestep, R=5"),
        "88.3 (R=100); 41.4",
    ),
    Claim(
        "5.1",
        "Loops solve what a Transformer does not, on LCS.",
        Effect(_TABLE_1, "LCS (12)", "timestep, R=5", "transformer, L=5", "timestep, R=5"),
        "99.3 (R=50); 70.0",
    ),
    Claim(
        "5.1, Fig. 5",
        "Accuracies on training and test problems of ED go together.",
        Stated(
            "not decided",
            _FIGURE_5,
            command="lengthwise reproduce looped/figure-5",
            numbers=tuple(
                Phrase(_FIGURE_5, rf"{kind} (-?\d\.\d+ \([^)]*; 12 runs\))") for kind in ("plain loop", "timestep")
            ),
            why="correlations and their 95 % intervals, plain loop and timestep",
        ),
    ),
    Claim(
        "5.2",
        "Timestep encoding helps in context, against the plain loop.",
        Effect(_TABLE_2, _TREES, "timestep, R=5", "plain loop, R=5", "timestep, R=5"),
        "1.70e-03; 1.43e-02",
    ),
    Claim(
        "5.2",
        "It surpasses even a Transformer of 12 layers.",
        Effect(_TABLE_2, _TREES, "timestep, R=5", "transformer, L=5", "timestep, R=5"),
        "1.70e-03; 8.64e-03",
    ),
)

_OF_LANGUAGE = Unrun("takes a GPU for days: 1.1 to 3.6 x 10^19 operations a net", "looped/table-3", "paper")

_TITLE = "Looped transformers: Table 3 of Xu and Sato, language, at a small size"
_LOOPS = ("1 loop", "3 loops", "6 loops")


def _at_a_small_size(*nets: str) -> Stated:
    """Perplexities of nets of `looped/table-3`."""
    why = (
        f"{'; '.join(nets)}, nets of 3 to 5 million parameters after 1,000 steps, with other activations than the "
        "published ones, and norms that differ between timestep and plain"
    )
    return small_perplexities("looped/table-3", _TITLE, [(net, "128") for net in nets], why)


_REST = (
    Claim(
        "5.2, Table 3",
        "Language: timestep encoding lowers test perplexity at each number of loops.",
        _at_a_small_size(*(f"{loops}, {kind}" for kind in ("timestep", "plain") for loops in _LOOPS)),
        "31.18, 23.45, 22.42; 33.11, 27.93, 28.16",
    ),
    Claim(
        "5.2, Table 3",
        "Language: it lowers training perplexity below that of a Transformer.",
        _OF_LANGUAGE,
        "5.05; 5.11",
    ),
    Claim(
        "5.2, Table 3",
        "Language: test perplexity falls short of a Transformer's.",
        _at_a_small_size("6 loops, timestep", "transformer"),
        "22.42; 19.6",
    ),
    Claim("C.1", "Subset sum.", Stated("reproduced", "looped.md", "tests/tasks/test_subset_sum.py")),
    Claim("C.1", "Knapsack.", Stated("reproduced", "looped.md", "tests/tasks/test_knapsack.py")),
    Claim(
        "C.1",
        "Longest common subsequence.",
        Stated("reproduced", "looped.md", "tests/tasks/test_longest_common_subsequence.py"),
    ),
    Claim("C.1", "Edit distance.", Stated("reproduced", "looped.md", "tests/tasks/test_edit_distance.py")),
    Claim("C.3", "Decision trees in context.", Stated("reproduced", "looped.md", "tests/tasks/test_decision_tree.py")),
    Claim("C.3", "The curriculum over dimensions.", Stated("reproduced", "looped.md", _BATCHES)),
)
