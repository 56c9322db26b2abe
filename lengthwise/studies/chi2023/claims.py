"""The claims of Chi et al. (2023)."""

from collections.abc import Iterator
from types import MappingProxyType

from lengthwise.studies.chi2023.experiments.medium import ROWS
from lengthwise.studies.chi2023.experiments.tables import PROBABILITIES
from lengthwise.studies.claims.claim import (
    CLAIMS,
    Claim,
    Contrast,
    Entry,
    Paper,
    Parameters,
    Phrase,
    Rows,
    Stated,
    TableNumber,
    Unrun,
    small_perplexities,
)
from lengthwise.studies.languages import LANGUAGES

_TABLE_1, _TABLE_2, _VARIANTS = "regular-gpt/table-1", "regular-gpt/table-2", "regular-gpt/variants"

_AT_FULL_WIDTH, _STEPS, _ALL_STEPS = "regular-gpt/medium", "30,000 steps", "100,000 steps"
"""The experiment with nets as wide as the paper's, and its columns: the second one is for modular arithmetic."""

_COMPILED = "tests/constructions/test_compiled_regular_gpt.py"
_TREE = "tests/ops/test_tree_attention.py"

_OWN_ANSWERS = "With the net's own answers"


def _scratchpad(net: str) -> TableNumber:
    return TableNumber("results/regular-gpt-scratchpad.md", "500", ("Parity", net), _OWN_ANSWERS)


@CLAIMS.register("chi2023")
def chi2023() -> Paper:
    """RegularGPT."""
    smaller = "D=64 for 256, 5,000 steps (Transformer: 2,000) for 100,000, one seed at each of three rates for three"
    full_width = (
        "until the training loss is low, or for 30,000 steps of 100,000 (modular arithmetic: for all of them, one seed "
        "of three, where the paper's code takes up to 1,000,000), at one rate of three"
    )
    return Paper(
        "Chi et al. (2023), Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length "
        "Extrapolation",
        [*_BACKGROUND, *_ARCHITECTURE, *_table_1(), *_COMPARISONS, *_table_2(), *_LANGUAGE, *_ANALYSIS],
        MappingProxyType(
            {
                _TABLE_1: smaller,
                _TABLE_2: smaller,
                _VARIANTS: f"{smaller}; with K=2, pads before the string, where the paper's code cuts windows",
                _AT_FULL_WIDTH: full_width,
            }
        ),
        note=(
            "The paper leaves open where the nets of Table 2 were trained: entries at P(1) other than 0.5 stand in two "
            "readings, and count twice."
        ),
    )


_BACKGROUND = (
    Claim(
        "2.2",
        "A Transformer learns parity at trained lengths by summing up, and is at chance beyond.",
        Entry(
            _TABLE_2,
            "P(1) = 0.5",
            "Transformer, extrapolation",
            fails=True,
            fits=("Transformer, same length", "mean"),
        ),
    ),
    Claim(
        "2.2",
        "With a scratchpad and a recency bias a Transformer extrapolates on parity.",
        Stated(
            "reproduced",
            "results/regular-gpt-scratchpad.md",
            command="lengthwise reproduce regular-gpt/scratchpad",
            numbers=(_scratchpad("scratchpad, window"),),
            why="mean / lowest at 500 symbols, own answers",
        ),
    ),
    Claim(
        "2.2",
        "Either alone does not.",
        Stated(
            "not decided",
            "results/regular-gpt-scratchpad.md",
            command="lengthwise reproduce regular-gpt/scratchpad",
            numbers=(_scratchpad("window"),),
            why="the bias alone, which is chance beyond its window; 300 steps decide nothing of the scratchpad alone",
        ),
    ),
    Claim(
        "2.2",
        "The scratchpad costs as many passes as symbols, one after another; RegularGPT has log T levels.",
        Stated("reproduced", "routing.md", test="tests/models/test_own_answers.py"),
    ),
)

_ARCHITECTURE = (
    Claim(
        "2.3, Fig. 1",
        "Divide and conquer answers parity in log_C T levels.",
        Stated("reproduced", "constructions.md", _COMPILED),
    ),
    Claim(
        "3",
        "All other details are GPT2's.",
        Stated("reproduced", "tasks-and-models.md", "tests/layers/test_tree_layers.py", why="the layer"),
    ),
    Claim("3.1, eq. (1)", "The sliding dilated mask.", Stated("reproduced", "routing.md", _TREE)),
    Claim("3.1", "Strings are padded to a multiple of C.", Stated("reproduced", "routing.md", _TREE)),
    Claim(
        "3.2",
        "Depth follows the length, by layers that share weights.",
        Stated("reproduced", "routing.md", "tests/models/test_regular_gpt.py"),
    ),
    Claim(
        "3.2",
        "Thickness K makes up for shared weights.",
        Rows(_VARIANTS, "the code's, K=2, pads", "the code's, K=1"),
    ),
    Claim(
        "3.4",
        "RegularGPT is likely to be cheaper than a Transformer of L layers if K < 3 L.",
        Stated(
            "contradicted",
            "routing.md",
            command="python benchmarks/depth_cost.py",
            numbers=(
                TableNumber("routing.md", "layers", ("512", "128")),
                TableNumber("routing.md", "layers, measured", ("512", "128")),
            ),
            why="the K / L of equal cost at T=512, C=128, counted and measured; the paper counts attention alone",
        ),
        "3.11",
    ),
    Claim(
        "4, Fig. 2",
        "Its routing is that of the parallel scan of a linear RNN.",
        Stated("reproduced", "routing.md", "tests/analysis/test_routing.py"),
    ),
    Claim(
        "5.1",
        "Even pairs, modular arithmetic, parity, cycle navigation.",
        Stated("reproduced", "tasks-and-models.md", "tests/contracts/test_task_contract.py"),
    ),
    Claim(
        "5.1",
        "D_n and Tomita languages, recognized.",
        Stated("reproduced", "tasks-and-models.md", "tests/tasks/test_recognition.py"),
    ),
    Claim(
        "5.1",
        "The same as next-symbol prediction (Bhattamishra et al.).",
        Stated("reproduced", "tasks-and-models.md", "tests/tasks/test_next_symbols.py"),
    ),
)


def _table_1() -> Iterator[Claim]:
    """An entry for each language and column, of nets as wide as the paper's where there are some.

    The paper's own nets at chance are claims of failure.
    """
    for language in LANGUAGES:
        for column, published in (
            ("RNN", language.published.rnn),
            ("Transformer", language.published.transformer),
            ("C=2", language.published.chunks_of_2),
            ("C=3", language.published.chunks_of_3),
        ):
            if published:
                fails = column == "Transformer" or (column, language.row) == ("C=3", "Modular Arithmetic")
                name = column if column in ("RNN", "Transformer") else f"RegularGPT, {column}"
                steps = _ALL_STEPS if language.row == "Modular Arithmetic" else _STEPS
                is_wide = column == "C=2" and language.row in ROWS
                cell = (_AT_FULL_WIDTH, language.row, steps) if is_wide else (_TABLE_1, language.row, column)
                entry = Entry(*cell, ("best run", "mean"), fails)
                yield Claim("Table 1", f"{language.row}, {name}{': no more than printed' * fails}.", entry)


_COMPARISONS = (
    Claim(
        "5.2",
        "RegularGPT with C=2 does about as well as an RNN.",
        Stated(
            "not decided",
            "results/regular-gpt-table-1.md",
            command="lengthwise reproduce regular-gpt/table-1",
            why="entry by entry above, mostly by smaller nets",
        ),
    ),
    Claim("5.2", "RegularGPT with C=2 outperforms a Transformer.", Rows(_TABLE_1, "C=2", "Transformer")),
    Claim(
        "5.3",
        "A larger C makes modular arithmetic harder.",
        Contrast(_TABLE_1, "Modular Arithmetic", "C=2", "C=3"),
    ),
)


def _table_2() -> Iterator[Claim]:
    """Two parts of three rows; a Transformer is said to fail beyond the training length, and at P(1) = 0.9 within."""
    for part in ("same length", "extrapolation"):
        for model in ("RegularGPT", "RNN", "Transformer"):
            for probability in PROBABILITIES:
                for trained in ("", "trained at 0.5, ")[: 1 if probability == 0.5 else 2]:
                    yield _of_table_2(model, f"{trained}{part}", probability)


def _of_table_2(model: str, part: str, probability: float) -> Claim:
    """An entry; the paper leaves open where a net was trained, so that both readings have one."""
    is_beyond = part.endswith("extrapolation")
    fails = model == "Transformer" and (is_beyond or probability == 0.9)
    fits = (f"{model}, {part.replace('extrapolation', 'same length')}", "mean") if fails and is_beyond else None
    entry = Entry(_TABLE_2, f"P(1) = {probability}", f"{model}, {part}", fails=fails, fits=fits)
    return Claim("Table 2", f"Parity, P(1) = {probability}, {part}, {model}{': no more than printed' * fails}.", entry)


_FIELDS = "results/regular-gpt-receptive-field.md"
_DEPTH = "depth of the input"
_TITLE = "RegularGPT: Table 3 of Chi et al., language, at a small size"


def _at_a_small_size(*cells: tuple[str, str]) -> Stated:
    """Perplexities of nets of `regular-gpt/table-3` at lengths, which show the shape that the paper's table has."""
    named = "; ".join(f"{net} at {length}" for net, length in cells)
    why = f"{named}, nets of 2 to 3 million parameters trained at 128"
    return small_perplexities("regular-gpt/table-3", _TITLE, cells, why)


_LANGUAGE = (
    Claim(
        "6, Table 3",
        "Language: 128/12 has about the same perplexity up to 16 times its training length.",
        _at_a_small_size(("32/6", "128"), ("32/6", "2,048")),
        "26.37 to 27.39",
    ),
    Claim(
        "6, Table 3",
        "Language: 128/12 is close to KERPLE, T5 and ALiBi at 8,192.",
        _at_a_small_size(*((net, "2,048") for net in ("32/6", "KERPLE", "T5", "ALiBi"))),
        "27.39; 24.74, 39.08, 25.08",
    ),
    Claim(
        "6, Table 3",
        "Language: C=32 explodes from 2,048 on.",
        _at_a_small_size((f"16/3, {_DEPTH}", "256"), (f"16/3, {_DEPTH}", "512")),
        "791.74",
    ),
    Claim(
        "6, Table 3",
        "Language: C=64 extrapolates up to 4,096 and not to 8,192.",
        _at_a_small_size((f"32/3, {_DEPTH}", "1,024"), (f"32/3, {_DEPTH}", "2,048")),
        "30.80; 1175.91",
    ),
    Claim(
        "6, Table 3",
        "Language: C=256 deteriorates.",
        _at_a_small_size(("64/3", "128"), ("64/3", "2,048")),
        "27.90 to 35.42",
    ),
    Claim(
        "6, Table 3",
        "Language: K=12 is better than K=6.",
        _at_a_small_size(("32/6", "128"), ("32/3", "128")),
        "26.37; 28.80",
    ),
    Claim(
        "7.4, Fig. 4b",
        "On language the receptive field is a local window.",
        Stated(
            "not decided",
            _FIELDS,
            command="lengthwise reproduce regular-gpt/receptive-field",
            numbers=tuple(
                TableNumber(_FIELDS, "with 99 %", (net, "2,048"))
                for net in ("32/6", "32/6, held at 2 levels", "16/3, at most 2 levels", "ALiBi")
            ),
            why="tokens of 2,048 with 99 % of the gradient: 32/6, without its third level, 16/3 at two levels, ALiBi",
        ),
    ),
    Claim(
        "Table 5",
        "Language nets have 81 and 123 million parameters.",
        Stated(
            "reproduced",
            "language.md",
            "tests/models/test_regular_gpt_lm.py",
            numbers=(
                Phrase("language.md", r"RegularGPT has (\d+) million parameters for K=6"),
                Phrase("language.md", r"and (\d+) million for K=12"),
            ),
            why="millions",
        ),
        "81M; 123M",
    ),
)

_INSIDE = "results/regular-gpt-inside.md"


def _inside(column: str, what: str) -> Stated:
    """A number for each task and layer, of nets whose training does not contract states."""
    layers = ("the code's", "GPT-2's")
    nets = [(task, layer) for layer in layers for task in ("Parity", "Cycle Navigation")]
    return Stated(
        "not decided",
        _INSIDE,
        command="lengthwise reproduce regular-gpt/inside",
        numbers=tuple(TableNumber(_INSIDE, column, net, "All nets") for net in nets),
        why=f"{what}, parity and cycle navigation with the code's layer, then with GPT-2's; D=64, one seed",
    )


_ANALYSIS = (
    Claim(
        "7.1, eq. (2)",
        "Transitions as matrices of one-hot rows, composed by products.",
        Stated("reproduced", "constructions.md", "tests/automata/test_representation.py"),
    ),
    Claim(
        "7.2, Lemma 1, App. C",
        "Two layers with ReLU multiply binary matrices.",
        Stated("reproduced", "constructions.md", _COMPILED),
    ),
    Claim(
        "7.2",
        "Two heads concatenate two states, by positional scalars 0 and -infinity.",
        Stated("reproduced", "constructions.md", _COMPILED),
    ),
    Claim(
        "7.2",
        "A linear map reads the answer off, after log_2 T levels.",
        Stated("reproduced", "constructions.md", _COMPILED),
    ),
    Claim(
        "7.3, Fig. 3",
        "States of trained nets form 2 clusters on parity and 5 on cycle navigation.",
        _inside(
            "levels whose clusters are elements",
            "levels at which at some distance the clusters are the elements, one for one",
        ),
        "2; 5",
    ),
    Claim(
        "7.4, Fig. 4a",
        "Gradients reach all symbols of parity and cycle navigation.",
        _inside("symbols with 99 % of gradient", "of 500 symbols"),
    ),
    Claim(
        "App. D", "The printed matrices W(1), W(2) and example.", Stated("reproduced", "constructions.md", _COMPILED)
    ),
    Claim(
        "Table 4",
        "Nets have 4.3 million parameters.",
        Stated(
            "contradicted",
            "results/regular-gpt-table-1.md",
            command="lengthwise claims",
            numbers=(Parameters(_TABLE_1, "Parity", "C=2"), Parameters(_TABLE_1, "Parity", "Transformer")),
            why="RegularGPT with C=2, and the Transformer, whose number the paper's is",
        ),
        "4.3 M",
    ),
    Claim(
        "Limitations",
        "A C that follows the data might help on language.",
        Unrun("takes a GPU, as Table 3 does; no experiment has such nets on a text"),
    ),
)
