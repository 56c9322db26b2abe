"""The claims of Fan et al. (2024)."""

from collections.abc import Iterator
from types import MappingProxyType

from lengthwise.experiment import Scale
from lengthwise.studies.claims.claim import (
    CLAIMS,
    Claim,
    Contrast,
    Entry,
    Paper,
    Stated,
    TableNumber,
    Verdict,
    small_perplexities,
)
from lengthwise.studies.fan2024.experiments.linear_rnn import TASKS

_TABLE_2 = "linear-rnn/table-2"
_SEARCH = "results/linear-rnn-baselines-search.md"

_TASKS = ("Sum(5)", "EvenPair(5)", "ModArith(5)")

_BLOCKS, _STATE_SPACE, _RECURRENCE = (
    "tests/models/test_block_linear_rnn.py",
    "tests/layers/test_state_space.py",
    "tests/ops/test_recurrence.py",
)


@CLAIMS.register("fan2024")
def fan2024() -> Paper:
    """Block-diagonal linear RNNs."""
    return Paper(
        "Fan et al. (2024), Advancing Regular Language Reasoning in Linear Recurrent Neural Networks",
        [*_MODELS, *_METHOD, *_fits(), *_lags(), *_table_2(), *_REST],
        MappingProxyType(
            {
                _TABLE_2: (
                    "2,000 steps (ModArith: 1,000) for 40,000 at 5 to 10 times the rate, two seeds for five, Liquid-S4 "
                    "with 8 numbers in a state for 64"
                ),
            }
        ),
    )


_MODELS = (
    Claim(
        "eq. (2)",
        "S4, S5 and the LRU are x_k = A x_{k-1} + B u_k.",
        Stated("reproduced", "propositions.md", _STATE_SPACE),
    ),
    Claim(
        "2.1, Prop. 1",
        "One matrix for all symbols: states cannot represent subtraction.",
        Stated(
            "reproduced",
            "propositions.md",
            "tests/test_examples.py",
            why="for states; a read-out that is not linear may tell the answers apart",
        ),
    ),
    Claim(
        "eq. (3)",
        "The diagonal recurrence that depends on the input.",
        Stated("reproduced", "propositions.md", "tests/models/test_stacked_rnn.py"),
    ),
    Claim(
        "3.1, Prop. 2, App. A.1",
        "Nor can diagonal ones that depend on the input.",
        Stated("reproduced", "propositions.md", "tests/test_examples.py", why="for states"),
    ),
    Claim(
        "3.2, eq. (4)",
        "Proposition 2 does not hold of Liquid-S4.",
        Stated("reproduced", "propositions.md", "tests/test_examples.py", why="if A is not diagonal"),
    ),
)

_DIMENSION = "Cost against the block dimension"

_METHOD = (
    Claim(
        "3.3, eq. (5)",
        "The layer x_k = A_k x_{k-1} + B u_k, literally.",
        Stated("reproduced", "tasks-and-models.md", _BLOCKS),
    ),
    Claim(
        "3.3, eq. (5)-(6)",
        "The layer as in the published code, blocks with columns in bounds.",
        Stated("reproduced", "tasks-and-models.md", _BLOCKS),
    ),
    Claim(
        "eq. (7)",
        "With p = 1 products of such matrices stay in bounds.",
        Stated("reproduced", "tasks-and-models.md", "tests/ops/test_column_norm.py"),
    ),
    Claim(
        "3.3",
        "p = 1.2 is small enough for good performance.",
        Stated(
            "not decided",
            "results/linear-rnn-sensitivity.md",
            command="lengthwise reproduce linear-rnn/sensitivity",
            numbers=tuple(
                TableNumber("results/linear-rnn-sensitivity.md", "mean", (f"S=8, p={p}", "columns of eq. (6)"))
                for p in ("1.0", "1.2", "2.0")
            ),
            why="means for p = 1, 1.2 and 2 on Sum(5), columns of eq. (6), two seeds, a twentieth of the steps",
        ),
    ),
    Claim(
        "3.4, Fig. 1, App. A.2",
        "The scan takes log_2 L steps and equals the sequential form.",
        Stated("reproduced", "results/recurrence-speed.md", _RECURRENCE),
    ),
    Claim(
        "3.4",
        "It costs O(b^3 h log T), at a fixed width quadratically in b.",
        Stated(
            "not decided",
            "results/recurrence-speed.md",
            command="python benchmarks/recurrence.py",
            numbers=tuple(
                TableNumber("results/recurrence-speed.md", column, ("the paper's scan",), _DIMENSION)
                for column in ("exponent", "last doubling")
            ),
            why="exponents of b: of 8 to 64, and of 32 to 64, where products begin to outweigh the rest of a step",
        ),
        "2",
    ),
    Claim(
        "4.1",
        "Sum(5), EvenPair(5), ModArith(5).",
        Stated("reproduced", "tasks-and-models.md", "tests/contracts/test_task_contract.py"),
    ),
)


_BY_SEARCH = "by one of five recipes, chosen by training loss (1,000 steps, one seed)"


def _searched(task: str, model: str, verdict: Verdict, column: str, why: str) -> Stated:
    """Of the net that fits by the recipe that training loss chose."""
    number = TableNumber(_SEARCH, column, (task, model))
    return Stated(
        verdict, _SEARCH, command="lengthwise reproduce linear-rnn/baselines-search", numbers=(number,), why=why
    )


def _fits() -> Iterator[Claim]:
    """Section 4.2, for the models of Table 2."""
    for model in ("Ours", "S4", "S4D", "Liquid-S4"):
        for task in _TASKS:
            scale: Scale = "paper" if model == "Ours" else "small"
            evidence: Entry | Stated = Entry(_TABLE_2, task, model, ("40",), expected=0.99, scale=scale)
            if model != "Ours" and task == "EvenPair(5)":
                why = f"final loss; right on at least 99 % of 256 strings of 40 {_BY_SEARCH}"
                evidence = _searched(task, model, "reproduced", "final loss", why)
            yield Claim("4.2", f"{task}, {model}: near-perfect at the training length.", evidence, "near-perfect")


def _lags() -> Iterator[Claim]:
    """Section 4.3, with means at 41 to 500 symbols in the absence of the paper's numbers."""
    for model in ("RWKV", "Vanilla"):
        for task in _TASKS:
            yield Claim("4.3", f"{task}: S4 is ahead of {model}.", Contrast(_TABLE_2, task, "S4", model))


def _table_2() -> Iterator[Claim]:
    for task in _TASKS:
        for model in ("Ours", "S4", "S4D", "Liquid-S4"):
            fails = model != "Ours"
            claim, published = f"{task}, {model}{': no more than printed' * fails}.", ""
            evidence: Entry | Stated = Entry(
                _TABLE_2, task, model, ("best test",), fails, (model, "40") if fails else None
            )
            if not fails:
                evidence = Entry(_TABLE_2, task, model, ("best test",), scale="paper")
            if fails and task == "EvenPair(5)":
                why = f"mean at 41-500, final weights, of a net that fits 40 {_BY_SEARCH}; the paper's is a best test"
                evidence, published = _searched(task, model, "not decided", "mean", why), TASKS[task].published[model]
            yield Claim("Table 2", claim, evidence, published)


def _speed(column: str, what: str, blocks: str = "8 of 8 x 8") -> TableNumber:
    return TableNumber("results/recurrence-speed.md", column, (blocks, what), "Section 4.5 of the paper")


_ONLY = (
    "*Ours* does by best tests at its own size (linear-rnn/table-2, scale paper); of eight baselines seven fit "
    "EvenPair(5) by a recipe searched on training loss, and are not right beyond; none fits Sum(5) "
    "(linear-rnn/baselines-search)"
)

_ON_A_CPU = "ms, scan and step by step, for a batch on one CPU core; the paper has a GPU"

_REST = (
    Claim(
        "4.4",
        "Ours is the only linear RNN that extrapolates.",
        Stated(
            "not decided",
            "results/linear-rnn-table-2.md",
            command="lengthwise reproduce linear-rnn/table-2",
            why=_ONLY,
        ),
    ),
    Claim(
        "4.4",
        "The inferior scores of S4 and S4D are what Proposition 1 predicts.",
        Stated(
            "not decided",
            "propositions.md",
            "tests/test_examples.py",
            why="Sum and EvenPair have no subtraction, of which it speaks",
        ),
    ),
    Claim(
        "4.5",
        "At T=40 the scan trains faster than step by step.",
        Stated(
            "not decided",
            "results/recurrence-speed.md",
            command="python benchmarks/recurrence.py",
            numbers=(_speed("the paper's scan", "training"), _speed("sequential", "training")),
            why=_ON_A_CPU,
        ),
        "21 ms; 33 ms",
    ),
    Claim(
        "4.5",
        "At T=500 both are as fast.",
        Stated(
            "not decided",
            "results/recurrence-speed.md",
            command="python benchmarks/recurrence.py",
            numbers=(_speed("the paper's scan", "test"), _speed("sequential", "test")),
            why=_ON_A_CPU,
        ),
        "30 ms; 30 ms",
    ),
    Claim(
        "4.5",
        "With b = 1 the scan is faster.",
        Stated(
            "not decided",
            "results/recurrence-speed.md",
            command="python benchmarks/recurrence.py",
            numbers=(_speed("the paper's scan", "test", "64 of 1 x 1"), _speed("sequential", "test", "64 of 1 x 1")),
            why=_ON_A_CPU,
        ),
        "0.8 ms; 2 ms",
    ),
    Claim(
        "Limitations (a)",
        "Average over random regular languages.",
        Stated(
            "not decided",
            "results/linear-rnn-random-languages.md",
            command="lengthwise reproduce linear-rnn/random-languages",
            numbers=(TableNumber("results/linear-rnn-random-languages.md", "mean", ("6 states, 2 symbols",)),),
            why="the paper leaves it open; mean over 50 languages of one dense block with one-hot columns",
        ),
    ),
    Claim(
        "Limitations (b)",
        "At least as good on language as earlier linear RNNs.",
        small_perplexities(
            "linear-rnn/language",
            "Linear RNNs as language models",
            [(net, "128") for net in ("block-diagonal, b=8", "block-diagonal, b=2", "diagonal", "LSTM", "transformer")],
            "b=8 and b=2, diagonal, an LSTM, a transformer: perplexities of small nets; the paper leaves it open",
        ),
    ),
    Claim(
        "Limitations (c)",
        "Harder problems need larger blocks, or more layers of the same.",
        Stated(
            "not decided",
            "results/linear-rnn-layers.md",
            command="lengthwise reproduce linear-rnn/layers",
            numbers=tuple(
                TableNumber("results/linear-rnn-layers.md", "40", (row, form))
                for form in ("eq. (5)-(6)", "code")
                for row in ("b=2, layers: 1", "b=2, layers: 2", "b=2, layers: 4", "b=4, layers: 1")
            ),
            why=(
                "at 40 symbols with 2 x 2 blocks in one, two and four layers, and with 4 x 4 in one; eq. (5)-(6), then "
                "the code's layer; one seed, 500 steps"
            ),
        ),
    ),
    Claim(
        "Limitations (c)",
        "Longer sequences need a smaller p.",
        Stated(
            "not decided",
            "results/linear-rnn-sensitivity.md",
            command="lengthwise reproduce linear-rnn/sensitivity",
            numbers=tuple(
                TableNumber("results/linear-rnn-sensitivity.md", "500", (f"S=8, p={p}", "columns of eq. (6)"))
                for p in ("1.0", "1.2", "2.0")
            ),
            why="lowest at 500 symbols for p = 1, 1.2 and 2, columns of eq. (6); one training length, two seeds",
        ),
    ),
)
