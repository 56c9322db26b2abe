"""x_t = A_t x_{t-1} + v_t: every form against the loop, values and all gradients."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.conventions import Diverged
from lengthwise.ops.block_recurrence import fastest_form, recurrence, recurrence_by_definition
from lengthwise.ops.scan import scan, scan_by_definition
from lengthwise.ops.symbol_recurrence import (
    MAX_CHUNKED_PRODUCTS,
    MAX_COMPOSED_POSITIONS,
    MIN_GATHERED_SYMBOLS,
    symbol_final_state,
    symbol_recurrence,
    symbol_recurrence_by_definition,
)

BEYOND = [1_025, pytest.param(4_097, marks=pytest.mark.slow)]
"""Lengths beyond those at which a form goes on to another block of steps."""
LENGTHS = [1, 2, 3, 40, 41, 63, 500, *BEYOND]
FORMS = ["sequential", "scan", "chunked", None]
KINDS = ["dense", "blocks", "diagonal", "block diagonals"]
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10, torch.complex64: 2e-4, torch.complex128: 1e-10}


def draw(kind: str, length: int, dtype: torch.dtype, batch_size: int = 2) -> list[torch.Tensor]:
    """Transitions of norm below 1, inputs and a first state, all of which ask for gradients."""
    generator = torch.Generator().manual_seed(length)
    blocks = (3, 4) if "block" in kind else (4,)
    matrix = (4,) if kind in ("dense", "blocks") else ()
    shapes = [(batch_size, length, *blocks, *matrix), (batch_size, length, *blocks), (batch_size, *blocks)]
    drawn = [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]
    drawn[0] = drawn[0] * (0.4 if matrix else 0.7)
    return [tensor.requires_grad_() for tensor in drawn]


def assert_same(states: torch.Tensor, expected: torch.Tensor, leaves: list[torch.Tensor]) -> None:
    """Values and gradients of a random linear function of them."""
    weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0), dtype=expected.dtype)
    ours, theirs = (torch.autograd.grad((x * weight).sum().real, leaves, retain_graph=True) for x in (states, expected))
    for one, other in zip((states, *ours), (expected, *theirs), strict=True):
        scale = max(1.0, float(other.detach().abs().max()))
        assert one.shape == other.shape
        assert float((one - other).detach().abs().max()) <= TOLERANCE[expected.dtype] * scale


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "dtype"), [("blocks", torch.float32), *((kind, torch.float64) for kind in KINDS)])
@pytest.mark.parametrize("length", LENGTHS)
def test_forms_are_equal(length: int, kind: str, dtype: torch.dtype) -> None:
    given = draw(kind, length, dtype)
    expected = recurrence_by_definition(*given)
    for form in FORMS:
        assert_same(recurrence(*given, form=form), expected, given)


@pytest.mark.parametrize("kind", ["dense", "diagonal"])
@pytest.mark.parametrize("form", FORMS)
def test_forms_are_equal_for_complex_numbers(form: str | None, kind: str) -> None:
    for length in (1, 2, 63):
        given = draw(kind, length, torch.complex128)
        assert_same(recurrence(*given, form=form), recurrence_by_definition(*given), given)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_derivatives(kind: str) -> None:
    for form in FORMS:
        given = draw(kind, 5, torch.float64, batch_size=1)
        assert torch.autograd.gradcheck(lambda *three, form=form: recurrence(*three, form=form), given)
    given = draw("diagonal", 5, torch.complex128, batch_size=1)
    assert torch.autograd.gradcheck(recurrence, given)


@given(st.integers(1, 70), st.integers(1, 3), st.sampled_from(["sequential", "scan", "chunked"]))
def test_a_string_read_in_two_parts_ends_in_the_same_states(length: int, cut: int, form: str) -> None:
    transitions, inputs, initial = (tensor.detach() for tensor in draw("blocks", length + cut, torch.float64))
    whole = recurrence(transitions, inputs, initial, form=form)
    first = recurrence(transitions[:, :cut], inputs[:, :cut], initial, form=form)
    rest = recurrence(transitions[:, cut:], inputs[:, cut:], first[:, -1], form=form)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole)


def test_the_rule_takes_chunks_for_small_steps_only() -> None:
    shapes = {(1, 500): "chunked", (128, 500): "sequential", (1, 40): "sequential"}
    for (batch_size, length), form in shapes.items():
        inputs = torch.empty(batch_size, length, 8, 8, device="meta")
        assert fastest_form(torch.empty(*inputs.shape, 8, device="meta"), inputs) == form


@given(st.integers(1, 70), st.sampled_from(["strings", "matrices"]))
def test_a_scan_needs_associativity_alone(length: int, what: str) -> None:
    """Neither an inverse nor commutativity: the last of two, and products of matrices."""
    generator = torch.Generator().manual_seed(length)
    if what == "strings":
        elements = (torch.randint(10, (2, length), generator=generator),)

        def operator(one, other):
            return (torch.where(other[0] > 0, other[0], one[0]),)
    else:
        elements = (torch.randint(3, (2, length, 2, 2), generator=generator),)

        def operator(one, other):
            return (other[0] @ one[0] % 7,)

    assert torch.equal(scan(operator, elements)[0], scan_by_definition(operator, elements)[0])


@pytest.mark.parametrize("length", [1, 2, 7, 63, 200])
def test_a_scan_has_the_gradients_of_its_definition(length: int) -> None:
    generator = torch.Generator().manual_seed(length)
    elements = torch.linalg.qr(torch.randn(2, length, 3, 3, generator=generator, dtype=torch.float64))[0]
    elements.requires_grad_()
    weight = torch.randn(elements.shape, generator=generator, dtype=torch.float64)
    # Products of orthogonal matrices stay of size 1, so each gradient sums `length` terms of about that size.
    one, other = (
        torch.autograd.grad((form(lambda one, other: (other[0] @ one[0],), (elements,))[0] * weight).sum(), elements)
        for form in (scan, scan_by_definition)
    )
    torch.testing.assert_close(one, other, rtol=0, atol=1e-14 * 3 * length**1.5 + 1e-13)


def test_a_scan_applies_its_operator_fewer_than_twice_a_step() -> None:
    for length in (1, 2, 3, 40, 63, 64, 500):
        applied = []

        def operator(one, other, applied=applied):
            applied.append(one[0].shape[1])
            return (one[0] + other[0],)

        scan(operator, (torch.ones(1, length),))
        assert sum(applied) < 2 * length
        assert len(applied) <= 2 * math.ceil(math.log2(length + 1))


def test_both_modes_of_the_papers_appendix_are_equal() -> None:
    """Appendix A.2.2: 7 steps, dense 2 x 2 matrices without any bound on their norms, and the states that it prints."""
    generator = torch.Generator().manual_seed(1)
    given = [torch.randn(shape, generator=generator) for shape in ((1, 7, 2, 2), (1, 7, 2), (1, 2))]
    printed = [(0.5167, -1.4218), (1.1399, 1.3024), (0.9628, 1.3150), (-1.5308, -1.6903), (-3.6631, 1.6082)]
    printed += [(1.7805, 7.1659), (2.5068, -0.6256)]
    assert given[2].tolist()[0] == pytest.approx([0.8310, -0.2477], abs=1e-4)
    for form in FORMS:
        torch.testing.assert_close(recurrence(*given, form=form)[0], torch.tensor(printed), atol=1e-4, rtol=0)


def test_the_matrices_of_the_papers_appendix_are_products_of_ranges() -> None:
    """Appendix A.2.1: A1 A3 A5 A7; A2 A3A2 A6 A7A6; A4 A5A4 A6A5A4 A7A6A5A4 are what prefixes of chunks multiply to."""

    def join(one, other):
        return (np.char.add(other[0], one[0]),)

    names = np.array([f"A{t}" for t in range(1, 8)])
    for start, stop, last in ((1, 3, "A3A2"), (5, 7, "A7A6"), (3, 7, "A7A6A5A4")):
        prefixes = scan_of_names(join, names[start:stop])
        assert prefixes[0] == f"A{start + 1}"
        assert prefixes[-1] == last
    assert scan_of_names(join, names[3:7]) == ["A4", "A5A4", "A6A5A4", "A7A6A5A4"]


def scan_of_names(join, names: np.ndarray) -> list[str]:
    """`scan` over strings, by their places: the operator joins what the places stand for."""
    table: list[str] = list(names)

    def operator(one, other):
        joined = [str(join((table[i],), (table[j],))[0]) for i, j in zip(one[0][0], other[0][0], strict=True)]
        table.extend(joined)
        return (torch.arange(len(table) - len(joined), len(table))[None],)

    (positions,) = scan(operator, (torch.arange(len(names))[None],))
    return [table[position] for position in positions[0]]


def draw_table(num_symbols: int, length: int, dtype: torch.dtype) -> tuple[list[torch.Tensor], torch.Tensor]:
    generator = torch.Generator().manual_seed(length)
    shapes = ((num_symbols, 3, 4, 4), (num_symbols, 3, 4), (2, 3, 4))
    table, values, initial = (torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)
    tokens = torch.randint(num_symbols, (2, length), generator=generator)
    return [tensor.requires_grad_() for tensor in (0.25 * table, values, initial)], tokens


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("num_symbols", "dtype"),
    [(5, torch.float32), *((num_symbols, torch.float64) for num_symbols in (1, 5, MIN_GATHERED_SYMBOLS))],
)
@pytest.mark.parametrize("length", [1, 2, 3, 63, *BEYOND])
def test_a_table_of_transitions_gives_the_same(
    length: int, num_symbols: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    (table, values, initial), tokens = draw_table(num_symbols, length, dtype)
    expected = symbol_recurrence_by_definition(table, values, tokens, initial)
    for small_products in (0, MAX_CHUNKED_PRODUCTS):  # step by step, and in chunks
        monkeypatch.setattr("lengthwise.ops.symbol_recurrence.MAX_CHUNKED_PRODUCTS", small_products)
        assert_same(symbol_recurrence(table, values, tokens, initial), expected, [table, values, initial])
        last = symbol_final_state(table, values, tokens, initial)
        assert_same(last, expected[:, -1], [table, values, initial])
        with torch.no_grad():
            torch.testing.assert_close(symbol_final_state(table, values, tokens, initial), last)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("few_positions", [0, MAX_COMPOSED_POSITIONS], ids=["step by step", "composed"])
@pytest.mark.parametrize("length", [1, 2, 3, 63, 500])
def test_one_hot_columns_give_the_same_bits(
    length: int, few_positions: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is not one-hot in a single place is not: a column, the first state, a value."""
    monkeypatch.setattr("lengthwise.ops.symbol_recurrence.MAX_COMPOSED_POSITIONS", few_positions)
    monkeypatch.setattr("lengthwise.ops.symbol_recurrence.STEPS_PER_COMPOSITION", 33)
    generator = torch.Generator().manual_seed(length)
    maps, starts = torch.randint(4, (5, 3, 4), generator=generator), torch.randint(4, (7, 3), generator=generator)
    table = torch.nn.functional.one_hot(maps, 4).mT.to(dtype)
    initial, values = torch.nn.functional.one_hot(starts, 4).to(dtype), torch.zeros(5, 3, 4, dtype=dtype)
    tokens = torch.randint(5, (7, length), generator=generator)
    tokens[:, 0] = 2
    for changed in (None, table, initial, values):
        if changed is not None:
            changed[2, 1, 0] += 0.5
        actual = symbol_final_state(table, values, tokens, initial)
        expected = symbol_recurrence_by_definition(table, values, tokens, initial)[:, -1]
        assert (set(actual.unique().tolist()) <= {0.0, 1.0}) == (changed is None)
        if changed is None:
            assert torch.equal(actual, expected)
        else:
            torch.testing.assert_close(actual, expected)
            changed[2, 1, 0] -= 0.5


def test_gradients_of_a_table_are_derivatives() -> None:
    for num_symbols, length in ((3, 5), (MIN_GATHERED_SYMBOLS, 3)):
        (table, values, initial), tokens = draw_table(num_symbols, length, torch.float64)
        function = lambda a, v, x, tokens=tokens: symbol_recurrence(a, v, tokens, x)  # noqa: E731
        assert torch.autograd.gradcheck(function, (table, values, initial))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": torch.zeros(2, 0, 3)}, r"inputs: expected shape \[B, T, \*N, S\] with T of at least 1"),
        ({"transitions": torch.zeros(2, 5, 3, 4)}, r"transitions: expected matrices \[2, 5, 3, 3\] or diagonals"),
        ({"initial": torch.zeros(2, 4)}, r"initial: expected shape \[2, 3\], got \[2, 4\]"),
        ({"inputs": torch.zeros(2, 5, 3, dtype=torch.complex64)}, "dtypes: expected one real or complex dtype"),
        (
            {"transitions": torch.full((2, 5, 3), math.nan)},
            r"transitions: expected finite numbers, got nan at \[0, 0, 0\]",
        ),
        ({"initial": torch.full((2, 3), math.inf)}, r"initial: expected finite numbers, got inf at \[0, 0\]"),
    ],
)
def test_bad_input_is_named(changes: dict, message: str) -> None:
    given = {"transitions": torch.zeros(2, 5, 3), "inputs": torch.zeros(2, 5, 3), "initial": torch.zeros(2, 3)}
    with pytest.raises(ValueError, match=message):
        recurrence(**given | changes)


@pytest.mark.unchecked
def test_unknown_forms_are_named() -> None:
    sentence = "^form: expected 'sequential' or 'scan' or 'chunked', got 'fast'; choose one of these$"
    with pytest.raises(ValueError, match=sentence):
        recurrence(torch.zeros(2, 5, 3), torch.zeros(2, 5, 3), form="fast")


def test_tables_and_tokens_that_do_not_fit_are_named() -> None:
    table, values, tokens, initial = (
        torch.zeros(3, 2, 4, 4),
        torch.zeros(3, 2, 4),
        torch.zeros(5, 6).long(),
        torch.zeros(5, 2, 4),
    )
    for function in (symbol_recurrence, symbol_final_state):
        for changed, message in (
            ((table, values, tokens + 3, initial), "tokens: expected symbol ids in 0..2, got ids in 3..3; number"),
            ((table, values, tokens - 1, initial), "tokens: expected symbol ids in 0..2, got ids in -1..-1"),
            ((table, values, tokens[:, :0], initial), "tokens: expected at least 1 step, got 0"),
            (
                (table, values.double(), tokens, initial),
                "dtypes: expected one real dtype for transitions, values and initial, got",
            ),
            ((table + math.nan, values, tokens, initial), "transitions: expected finite numbers, got nan at"),
        ):
            with pytest.raises(ValueError, match=message):
                function(*changed)


def test_states_that_overflow_are_a_divergence_with_its_step() -> None:
    """Numbers double at every step: 2^128 is beyond float32."""
    transitions, inputs, initial = torch.full((1, 200, 1), 2.0), torch.zeros(1, 200, 1), torch.ones(1, 1)
    for form in FORMS[:3]:
        with pytest.raises(Diverged, match=r"states overflow although .* \(step 128\)"):
            recurrence(transitions, inputs, initial, form=form)
    table = torch.full((1, 1, 1, 1), 2.0)
    for function in (symbol_recurrence, symbol_final_state):
        with pytest.raises(Diverged, match="step 128"):
            function(table, torch.zeros(1, 1, 1), torch.zeros(1, 200).long(), torch.ones(1, 1, 1))


@pytest.mark.parametrize("form", FORMS[:3])
def test_an_overflow_that_a_zero_hides_is_a_divergence_too(form: str) -> None:
    transitions = torch.full((1, 150, 1), 2.0).index_fill(1, torch.tensor([140]), 0.0)
    with pytest.raises(Diverged, match="step 128"):
        recurrence(transitions, torch.ones(1, 150, 1), form=form)


def test_states_that_overflow_are_kept_on_request() -> None:
    """And the other string of the batch, whose transitions are 1, is read as it is alone."""
    table, tokens = torch.tensor([2.0, 1.0]).view(2, 1, 1, 1), torch.tensor([[0], [1]]).expand(2, 200)
    transitions, inputs, initial = table[tokens][..., 0, 0], torch.zeros(2, 200, 1), torch.ones(2, 1)
    values, first = torch.zeros(2, 1, 1), initial[:, None]
    for form in FORMS[:3]:
        states = recurrence(transitions, inputs, initial, form=form, overflow="keep")[..., 0]
        assert states.isfinite().sum(1).tolist() == [127, 200]
    states = symbol_recurrence(table, values, tokens, first, overflow="keep")[..., 0, 0]
    assert states.isfinite().sum(1).tolist() == [127, 200]
    last = symbol_final_state(table, values, tokens, first, overflow="keep")
    assert last.flatten().isfinite().tolist() == [False, True]
