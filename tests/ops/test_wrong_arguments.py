"""Wrong names of options in ops and layers, and wrong ends of intervals: one sentence names the argument."""

from collections.abc import Callable

import pytest
import torch

from lengthwise.layers.transformer_layer import TransformerLayer
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.ops.answer_likelihood import answer_log_probabilities, answer_log_probabilities_by_definition
from lengthwise.ops.answers import answers_of
from lengthwise.ops.block_recurrence import fastest_form, recurrence
from lengthwise.ops.causal_convolution import causal_convolution_by_definition
from lengthwise.ops.column_norm import (
    clamped_columns,
    hard_columns,
    reflections,
    rescaled_blocks,
    rescaled_blocks_by_definition,
    stochastic_columns,
    unit_columns,
)
from lengthwise.ops.complex_pairs import times_pairs
from lengthwise.ops.cut_tree import cut_prefix_states
from lengthwise.ops.delta_rule import delta_rule, delta_rule_by_definition
from lengthwise.ops.dilated_attention import dilated_attention, dilated_attention_by_definition, dilated_mask
from lengthwise.ops.grid import antidiagonals, grid_by_definition, last_row
from lengthwise.ops.in_range import states_in_range, states_in_range_by_definition, steps_by_position
from lengthwise.ops.integer_answers import integer_loss, integer_loss_by_definition
from lengthwise.ops.intervals import Intervals
from lengthwise.ops.matrix_powers import powers_times, powers_times_by_definition
from lengthwise.ops.merge import merge
from lengthwise.ops.mlstm import mlstm_by_definition, stabilizers
from lengthwise.ops.outer_products import decay_products, decay_products_by_definition
from lengthwise.ops.parts import through_parts
from lengthwise.ops.scan import scan, scan_by_definition
from lengthwise.ops.selective_scan import decays_of, selective_scan, selective_scan_by_definition
from lengthwise.ops.sinusoids import position_sinusoids, sinusoids_at, timestep_sinusoids
from lengthwise.ops.slstm import slstm_by_definition
from lengthwise.ops.sparse_recurrence import sparse_recurrence, sparse_recurrence_by_definition
from lengthwise.ops.symbol_recurrence import (
    SymbolStep,
    one_hot_positions,
    symbol_final_state,
    symbol_recurrence,
    symbol_recurrence_by_definition,
)
from lengthwise.ops.tree import Tree, num_levels
from lengthwise.ops.tree_attention import attend, last_state, last_states, prefix_states

pytestmark = pytest.mark.unchecked  # the package itself is to refuse them, without beartype

ONES = torch.ones
INTEGERS = torch.eye(2, dtype=torch.int64)
NUMBER = torch.tensor(1.0)
HEADS = ONES(1, 1, 3, 2)
SCAN = (ONES(1, 3, 1), ONES(1, 1), ONES(1, 3, 1), ONES(1, 3, 1), ONES(1, 3, 1), ONES(1, 1, 1))
NO_FLOAT = "expected real numbers, got torch.int64; convert them with"
EYES = torch.eye(2).expand(1, 3, 2, 2)
TABLE = (torch.eye(2).expand(2, 1, 2, 2), torch.zeros(2, 1, 2), torch.tensor([[0, 1]]), torch.zeros(1, 1, 2))
SPARSE = (torch.eye(2), torch.eye(2).expand(2, 2, 2), None, None, torch.tensor([[1, 0]]), torch.zeros(1, 2, 1))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: timestep_sinusoids(2, 4, "fractions"), "time: expected 'index' or 'fraction', got 'fractions'; "),
        (lambda: recurrence(EYES, EYES[..., 0], overflow="zz"), "overflow: expected 'raise' or 'keep', got 'zz'; "),
        (lambda: symbol_recurrence(*TABLE, overflow="zz"), "overflow: expected 'raise' or 'keep', got 'zz'; "),
        (lambda: symbol_final_state(*TABLE, overflow="zz"), "overflow: expected 'raise' or 'keep', got 'zz'; "),
        (lambda: sparse_recurrence(*SPARSE, overflow="zz"), "overflow: expected 'raise' or 'keep', got 'zz'; "),
        (lambda: Intervals([0.0], torch.ones(1)), "low: expected a tensor, got a list; make a tensor of it with"),
        (lambda: Intervals(torch.zeros(2), torch.ones(3)), r"high: expected shape \[2\], got \[3\]; give both ends"),
        (
            lambda: Intervals.around(torch.zeros(2), -1.0),
            "radius: expected a number of at least 0, got -1.0; give half",
        ),
        (
            lambda: TransformerLayer(d_model=4, num_heads=2, kind="gpt2", activations="zz"),
            "activations: expected 'kept' or 'recomputed', got 'zz'; ",
        ),
    ],
)
def test_one_sentence_names_the_argument(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


def of_symbols(function: Callable[..., object], *symbols: int) -> object:
    """Call a function of a table of two matrices with a string of symbols."""
    table, values, _, initial = TABLE
    given = (table,) if function is one_hot_positions else (table, values)
    return function(*given, torch.tensor([symbols]), initial)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: attend([], [], [], ONES(1, 2)), "query: expected a tensor, got a list; make a tensor"),
        (lambda: attend(ONES(1, 1, 2), [], [], ONES(1, 1)), "values: expected at least 1 tensor, and as many as keys"),
        (
            lambda: attend(ONES(1, 2), [ONES(1, 2)], [ONES(2)], ONES(1, 1)),
            r"query: expected the shape",
        ),
        (
            lambda: attend(*[ONES(1, 2), *[[ONES(1, 2)] * 2] * 2], ONES(1, 1)),
            r"bias: expected shape \[1, C\] with C of",
        ),
        (lambda: clamped_columns(INTEGERS), f"matrices: {NO_FLOAT}"),
        (lambda: unit_columns(INTEGERS), f"matrices: {NO_FLOAT}"),
        (lambda: rescaled_blocks(INTEGERS), f"matrices: {NO_FLOAT}"),
        (lambda: rescaled_blocks_by_definition(INTEGERS), f"matrices: {NO_FLOAT}"),
        (lambda: hard_columns(INTEGERS), f"logits: {NO_FLOAT}"),
        (lambda: reflections(INTEGERS), f"numbers: {NO_FLOAT}"),
        (lambda: reflections(ONES(1)), r"numbers: expected shape \[\.\.\., K\] with K of at least 2"),
        (
            lambda: dilated_attention(HEADS, HEADS, HEADS.double(), ONES(1, 2), 1),
            "dtypes: expected one real dtype for query",
        ),
        (lambda: dilated_attention(HEADS.long(), HEADS, HEADS, ONES(1, 2), 1), f"query: {NO_FLOAT}"),
        (
            lambda: dilated_attention_by_definition(HEADS, HEADS, HEADS, ONES(1, 2), 0),
            "stride: expected a whole number",
        ),
        (lambda: dilated_attention_by_definition(HEADS, HEADS, HEADS, ONES(2, 2), 1), r"bias: expected shape \[1, C\]"),
        (lambda: dilated_mask([1], 1, 3), "bias: expected a tensor, got a list"),
        (lambda: dilated_mask(ONES(1, 0), 1, 3), "bias: expected at least 1 column, got 0"),
        (lambda: dilated_mask(ONES(1, 2), 1, "a"), "length: expected a whole number of at least 1, got 'a'"),
        (lambda: answers_of([1.0]), "logits: expected a tensor, got a list"),
        (lambda: answers_of(NUMBER), r"logits: expected shape \[..., Y\] with Y of at least 1, got \[\]; give"),
        (lambda: answers_of(ONES(2, 0)), r"logits: expected shape \[..., Y\] with Y of at least 1, got \[2, 0\]"),
        (lambda: times_pairs([1], ONES(2)), "a: expected a tensor, got a list"),
        (
            lambda: times_pairs(ONES(3, 2), ONES(4, 2)),
            r"x: expected a shape that fits \[3, 2\], the shape of a, got \[4, 2\]; make the sizes equal, or 1",
        ),
        (lambda: stabilizers(ONES(1, 2, 1), ONES(1, 3, 1), ONES(1, 1)), r"log_f: expected shape \[1, 2, 1\] "),
        (lambda: AROUND + Intervals.around(ONES(3)), r"other: expected a shape that fits \[.*2\], the shape of the"),
        (lambda: AROUND * 3, "other: expected Intervals, got 3; give one"),
        (lambda: AROUND.mixed(AROUND, Intervals.around(ONES(3))), "share: expected a shape that fits"),
        (lambda: times_pairs(ONES(2), ONES(3)), r"x: expected pairs \[..., 2\], got shape \[3\]; give"),
        (lambda: num_levels("a", 2), "length: expected a whole number, got 'a'; give one"),
        (lambda: num_levels(3, 2.5), "chunk_size: expected a whole number, got 2.5; give one"),
        (lambda: num_levels(3, 2, 5), "lower_chunk_sizes: expected a list of whole numbers, got 5; give one"),
        (lambda: scan(None, (ONES(1, 3),)), "operator: expected a function, got None; give one"),
        (lambda: scan_by_definition(None, (ONES(1, 3),)), "operator: expected a function, got None; give one"),
        (lambda: selective_scan(*SCAN, rows=3), "rows: expected a pair of tensors, got 3; give a table"),
        (
            lambda: selective_scan(*SCAN, rows=(ONES(1, 1), ONES(1, 3))),
            "rows: expected whole numbers, got torch.float32",
        ),
        (
            lambda: selective_scan(*SCAN, rows=(ONES(1, 1), torch.tensor([[0, 7, 0]]))),
            r"rows: expected rows 0..0, got 0..7; give",
        ),
        (lambda: SymbolStep("a", None, 1), "transitions: expected a tensor, got a str"),
        (lambda: SymbolStep(ONES(2), None, 1), r"transitions: expected shape \[V, N, S, S\], got \[2\]"),
        (lambda: SymbolStep(TABLE[0], "a", 1), "values: expected a tensor, got a str"),
        (lambda: SymbolStep(TABLE[0], ONES(2), 1), r"values: expected shape \[2, 1, 2\], got \[2\]"),
        (lambda: SymbolStep(TABLE[0], None, "a"), "batch_size: expected a whole number, got 'a'; give one"),
        (lambda: decay_products(NUMBER), r"decays: expected shape \[..., C\] with C of at least 1, got \[\]; give"),
        (lambda: decay_products_by_definition(NUMBER), r"decays: expected shape \[..., C\] with C of at least 1, got"),
        (
            lambda: of_symbols(symbol_recurrence_by_definition, 9),
            r"tokens: expected symbol ids in 0..1, got ids in 9..9; number",
        ),
        (
            lambda: of_symbols(symbol_recurrence_by_definition, -1),
            r"tokens: expected symbol ids in 0..1, got ids in -1..-1; number",
        ),
        (lambda: of_symbols(one_hot_positions, -1), r"tokens: expected symbol ids in 0..1, got ids in -1..-1;"),
        (lambda: causal_convolution_by_definition([1], ONES(1, 1)), "inputs: expected a tensor, got a list"),
        (
            lambda: causal_convolution_by_definition(ONES(1, 2, 1), ONES(3, 2)),
            r"kernels: expected shape \[1, 2\] for",
        ),
        (lambda: sinusoids_at([1], 4), "positions: expected a tensor, got a list"),
        (lambda: sinusoids_at(INTEGERS, 4), r"positions: expected shape \[T\], got \[2, 2\]"),
        (lambda: position_sinusoids("a", 4), "length: expected a whole number, got 'a'; give one"),
        (lambda: timestep_sinusoids(2.5, 4), "num_loops: expected a whole number, got 2.5; give one"),
        (lambda: powers_times(INTEGERS[None], ONES(1, 2), 3), f"matrices: {NO_FLOAT}"),
        (
            lambda: integer_loss(ONES(2), ONES(2), sharpness="a"),
            "sharpness: expected a number above 0, got .a.;",
        ),
    ],
)
def test_a_wrong_kind_shape_or_range_is_named(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        call()


LIKELIHOOD = {
    "transitions": torch.eye(2).expand(2, 2, 2),
    "emissions": torch.eye(2),
    "tokens": torch.tensor([[0, 1]]),
    "targets": torch.tensor([[0, 1]]),
    "initial": ONES(1, 2),
}
DELTA = (ONES(1, 3, 1, 2), ONES(1, 3, 1, 1, 2), ONES(1, 3, 1, 1, 2), ONES(1, 3, 1, 1), None, ONES(1, 1, 2, 2))
IDS = torch.tensor([[0, 1]])
TREE = Tree(ONES(3, 4), [MergeLayer(d_model=4, num_heads=2, chunk_size=2)], 2)
WEIGHTS = [ONES(2), ONES(2, 2), ONES(4, 2), ONES(2, 2), ONES(1, 2)]
GRID = (ONES(1), ONES(1), IDS, IDS)
AROUND = Intervals.around(ONES(2))


def both(above: torch.Tensor, left: torch.Tensor, *letters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pass both messages of a cell on."""
    return above, left


def still(start: int, stop: int, state: torch.Tensor) -> torch.Tensor:
    """Return one state that does not change."""
    return state[:, None]


def sparse(**changed: object) -> object:
    names = ("mixtures", "dictionary", "factors", "values", "rows", "initial")
    return sparse_recurrence(**{**dict(zip(names, SPARSE, strict=True)), **changed})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: answer_log_probabilities(**{**LIKELIHOOD, "targets": ONES(1, 2)}),
            "targets: expected whole numbers, got torch.float32; convert",
        ),
        (
            lambda: answer_log_probabilities(**{**LIKELIHOOD, "emissions": ONES(2, 2).double()}),
            "dtypes: expected one real dtype for transitions, emissions and initial, got torch.float32, torch.float64",
        ),
        (
            lambda: answer_log_probabilities_by_definition(**{**LIKELIHOOD, "targets": torch.tensor([[0, 5]])}),
            "targets: expected ids of answers in 0..1, or -100 for no answer, got 5; give",
        ),
        (lambda: fastest_form([1], ONES(1, 2, 2)), "transitions: expected a tensor, got a list"),
        (lambda: prefix_states(IDS, None), "tree: expected a Tree, got None; give one"),
        (lambda: cut_prefix_states(IDS, None), "tree: expected a Tree, got None; give one"),
        (lambda: prefix_states(IDS + 9, TREE), r"ids: expected symbol ids in 0..2, got ids in 9..10; number"),
        (lambda: prefix_states(IDS, TREE._replace(layers=[])), "layers: expected at least one tree layer, got none"),
        (lambda: prefix_states(IDS, TREE._replace(pad_rule="zz")), "pad_rule: expected 'merged' or 'raw', got 'zz'"),
        (lambda: prefix_states(IDS, TREE._replace(left_edge="zz")), "left_edge: expected 'pads' or 'cut', got 'zz'"),
        (lambda: prefix_states(IDS, TREE, 3), "perturb: expected a function, got 3; give one"),
        (lambda: prefix_states(IDS, TREE, table_rows="a"), "table_rows: expected a whole number, got 'a'; give one"),
        (lambda: last_state(IDS[0], TREE), r"ids: expected shape \[B, T\], got \[2\]"),
        (lambda: last_states(IDS, TREE), "batches: expected a list or tuple of tensors, got one tensor"),
        (lambda: delta_rule(*DELTA, chunk_steps=0), "chunk_steps: expected a whole number of at least 1, got 0"),
        (
            lambda: delta_rule_by_definition(DELTA[0], [1], *DELTA[2:]),
            r"keys: expected a tensor of shape .*, got a list",
        ),
        (lambda: list(antidiagonals(both, ONES(1), ONES(2), IDS, IDS)), r"left: expected shape \[1\], got \[2\]; give"),
        (lambda: grid_by_definition(None, *GRID), "cell: expected a function, got None; give one"),
        (lambda: grid_by_definition(both, *GRID[:3], INTEGERS), "second: expected 1 strings, as in first, got 2; give"),
        (lambda: last_row(both, *GRID, torch.tensor([9])), r"heights: expected 0 .the border. or rows 1..2, got 9"),
        (lambda: last_row(both, *GRID, torch.tensor([-1])), r"heights: expected 0 .the border. or rows 1..2, got -1"),
        (lambda: last_row(both, *GRID, torch.tensor([1, 2])), r"heights: expected shape \[1\], got \[2\]; give"),
        (lambda: states_in_range(still, 0, ONES(1, 2), driven=False), "length: expected a whole number of at least 1"),
        (
            lambda: states_in_range_by_definition(3, 3, ONES(1, 2), driven=False),
            "steps: expected a function, got 3; give one",
        ),
        (lambda: steps_by_position([1], ONES(1, 2, 2)), "transitions: expected a tensor, got a list"),
        (
            lambda: integer_loss_by_definition(ONES(0), ONES(0), sharpness=1.0),
            "numbers: expected at least 1 number, got",
        ),
        (lambda: integer_loss_by_definition(ONES(2), ONES(2), sharpness=-1.0), "sharpness: expected a number above 0"),
        (lambda: Intervals.around(ONES(2), "a"), "radius: expected a number of at least 0, got 'a'; give half"),
        (
            lambda: Intervals.around(ONES(2), float("nan")),
            "radius: expected a number of at least 0, got nan; give half",
        ),
        (lambda: Intervals.joined([]), r"parts: expected a list of one or more Intervals, got \[\]; put"),
        (lambda: Intervals.stacked([1]), r"parts: expected a list of one or more Intervals, got \[1\]; put"),
        (lambda: AROUND.linear([1]), "weight: expected a tensor, got a list"),
        (lambda: AROUND.linear(ONES(3, 4)), r"weight: expected shape \[_, 2\], got \[3, 4\]; give one column"),
        (
            lambda: powers_times_by_definition(ONES(1, 2, 2), ONES(1, 2), 0),
            "count: expected a whole number of at least",
        ),
        (lambda: merge(WEIGHTS, ONES(3, 2)), r"states: expected shape \[C, M, D\], got \[3, 2\]"),
        (lambda: merge(WEIGHTS, ONES(2, 1, 3)), r"weights: expected gains of shape \[3\], like one state, got"),
        (
            lambda: merge([*WEIGHTS[:4], ONES(3, 2)], ONES(2, 1, 2)),
            r"weights: expected a bias \[H, C\] with H a divisor",
        ),
        (
            lambda: merge([*WEIGHTS[:4], ONES(1, 1)], ONES(2, 1, 2)),
            r"weights: expected a bias \[H, C\] with H a divisor",
        ),
        (lambda: merge(WEIGHTS, ONES(3, 2), ONES(2, 1)), "windows: expected whole numbers, got torch.float32; convert"),
        (
            lambda: mlstm_by_definition([1], *[ONES(1, 2, 1)] * 6),
            r"i: expected a tensor of shape \[B, T, H\], got a list",
        ),
        (
            lambda: slstm_by_definition(None, *[ONES(1, 1, 1)] * 4),
            "gates: expected a tensor of shape .*, got a NoneType",
        ),
        (lambda: through_parts(None, [ONES(2)], 3), "function: expected a function, got None; give one"),
        (lambda: through_parts(both, [None], 3), "given: expected at least one tensor, got none; give"),
        (lambda: sparse(rows=torch.tensor([[1, 5]])), r"rows: expected symbol ids in 0..1, got ids in 1..5; number"),
        (lambda: sparse(rows=torch.tensor([[1, -1]])), r"rows: expected symbol ids in 0..1, got ids in -1..1; number"),
        (
            lambda: sparse(mixtures=INTEGERS),
            "dtypes: expected one real dtype for mixtures, dictionary and initial, got",
        ),
        (lambda: sparse(initial=ONES(1, 2, 0)), r"initial: expected shape \[1, 2, 1\], got \[1, 2, 0\]; give"),
        (lambda: sparse_recurrence_by_definition(*SPARSE, form="zz"), "form: expected 'scatter' or 'gather', got 'zz'"),
        (lambda: decays_of(3, "signed"), "exponents: expected a tensor, got an int"),
        (lambda: decays_of(ONES(2), "zz"), "eigenvalues: expected 'positive' or 'signed', got 'zz'"),
        (lambda: selective_scan_by_definition(*SCAN, eigenvalues="zz"), "eigenvalues: expected 'positive' or 'signed'"),
        (
            lambda: stochastic_columns(ONES(2)),
            r"logits: expected shape \[..., S, M\] with S of at least 1, got",
        ),
        (lambda: hard_columns(ONES(0, 2)), r"dim: expected -2 for columns or -1 .* for shape \[0, 2\]; choose"),
        (lambda: rescaled_blocks(ONES(0, 0)), r"matrices: expected square matrices \[..., S, S\], got shape \[0, 0\]"),
    ],
)
def test_definitions_and_trees_name_wrong_arguments(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        call()
