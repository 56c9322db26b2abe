"""Lifetimes of generators: rounded matrices against predictions, and a million steps in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from word_classes import word_classes

from lengthwise.constructions.memorization.closed_form import permutation, repeats, simplex
from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.lifetime import (
    PRECISIONS,
    angle_formula,
    drifts,
    predicted_lifetime,
    rounded,
    with_rounded_hidden,
)
from lengthwise.constructions.memorization.memorize import Memorization, memorize
from lengthwise.constructions.memorization.words import parse_word

pytestmark = pytest.mark.unchecked

LOW = ("bfloat16", "float16")
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32, "float64": torch.float64}


def arcs(zeros: int, period: int) -> Memorization:
    return memorize("0" * zeros + "1" * (period - zeros))


def measured(generator: LinearGenerator, memorization: Memorization, count: int) -> int | None:
    """The first wrong step of the first `count`."""
    output = generator.logits(generator.states(count)).argmax(1)
    wrong = np.flatnonzero(output != np.resize(memorization.word.letters, count))
    return int(wrong[0]) + 1 if len(wrong) else None


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=5))
def test_numbers_are_rounded_as_torch_rounds_them(numbers: list[float]) -> None:
    single = np.array(numbers, np.float32).astype(float)  # torch rounds twice on its way from float64
    for precision in PRECISIONS:
        expected = torch.tensor(single).to(DTYPES[precision]).double().numpy()
        np.testing.assert_array_equal(rounded(single, precision), expected)


@pytest.mark.parametrize(
    ("a", "p", "precision", "steps"),
    [
        *((5, 8, precision, 6_493) for precision in LOW),
        *((1, 8, precision, 1_488) for precision in LOW),
        *((3, 10, precision, steps) for precision, steps in zip(LOW, (150, 2_519), strict=True)),
        *((5, 10, precision, steps) for precision, steps in zip(LOW, (255, 6_684), strict=True)),
        *((3, 7, precision, steps) for precision, steps in zip(LOW, (262, 4_550), strict=True)),
    ],
)
def test_lifetimes_of_the_sheet(a: int, p: int, precision: str, steps: int) -> None:
    """The number of correct steps."""
    memorization = arcs(a, p)
    assert measured(with_rounded_hidden(memorization.generator, precision), memorization, 10_000) == steps + 1
    assert predicted_lifetime(memorization, precision).first_wrong == steps + 1


@pytest.mark.sampled  # each case follows 30,000 steps
@pytest.mark.parametrize("text", ["0010111", "abacabad", "abcacb", "001011101", "00000000001", "abcdefg", "0011"])
@pytest.mark.parametrize("precision", LOW)
def test_predictions_are_what_happens(text: str, precision: str) -> None:
    memorization = memorize(text)
    predicted = predicted_lifetime(memorization, precision)
    happened = measured(with_rounded_hidden(memorization.generator, precision), memorization, 30_000)
    assert happened == (predicted.first_wrong if (predicted.first_wrong or math.inf) <= 30_000 else None)


def angle_lifetime(memorization: Memorization, drift: float) -> int:
    """The formula, rounded up to a step with a different letter on the side to which the plane drifts.

    For words of one plane all of whose decision lines go through 0 and the middle of edges.
    """
    (k,), p, letters = memorization.frequencies, memorization.word.period, memorization.word.letters
    neighbor = pow(k, -1, p) if drift > 0 else -pow(k, -1, p)
    step = math.ceil(angle_formula(p, drift))
    while letters[step % p] == letters[(step + neighbor) % p]:
        step += 1
    return step + 1


@pytest.mark.parametrize(("precision", "bare"), [("bfloat16", 22), pytest.param("float16", 29, marks=pytest.mark.slow)])
def test_threshold_0_lives_as_long_as_the_angle_says(precision: str, bare: int) -> None:
    """Balanced words of period 4 to 64, to the step; 29 drift, and of `bare` the formula alone is within 5 %."""
    errors = []
    for half in range(2, 33):
        memorization = arcs(half, 2 * half)
        assert np.abs(memorization.generator.bias).max() < 1e-9
        ((drift, _),) = drifts(memorization, precision)
        predicted = predicted_lifetime(memorization, precision).first_wrong
        happened = measured(with_rounded_hidden(memorization.generator, precision), memorization, predicted or 10_000)
        assert happened == predicted
        if drift == 0:
            assert predicted is None
            continue
        assert happened is not None
        assert happened == angle_lifetime(memorization, drift)
        late = happened - angle_formula(2 * half, drift)
        assert 0 < late <= half + 1
        errors.append(late / happened)
    assert (sum(error <= 0.05 for error in errors), len(errors)) == (bare, 29)


@pytest.mark.parametrize("precision", LOW)
@pytest.mark.parametrize("text", ["021", "0100110110", "001122", "000111222"])
def test_other_words_of_one_plane_and_threshold_0_do_too(text: str, precision: str) -> None:
    """Balanced at a stride, and of more symbols."""
    memorization = memorize(text)
    assert np.ptp(memorization.generator.bias) < 1e-6
    ((drift, _),) = drifts(memorization, precision)
    predicted = predicted_lifetime(memorization, precision).first_wrong
    assert predicted == angle_lifetime(memorization, drift)
    assert measured(with_rounded_hidden(memorization.generator, precision), memorization, predicted) == predicted


@pytest.mark.parametrize(
    ("text", "precision"), [("0" * 5 + "1" * 5, "float32"), ("0010111", "float32"), ("00111", "float64")]
)
def test_predictions_far_ahead_are_right_at_their_step(text: str, precision: str) -> None:
    """By powers of the rounded eigenvalues with 60 digits: wrong there, and right one period before."""
    memorization = memorize(text)
    step = predicted_lifetime(memorization, precision).first_wrong
    assert step is not None
    assert step > 1e6
    hidden, generator = rounded(memorization.generator.hidden, precision), memorization.generator
    with mp.workdps(60):
        for i, is_right in ((step - 1, False), (step - 1 - memorization.word.period, True)):
            planes = [
                mp.mpc(hidden[k, k], hidden[k + 1, k]) ** i * generator.first[k] for k in range(0, len(hidden), 2)
            ]
            state = np.array([float(part) for plane in planes for part in (plane.real, plane.imag)])
            output = int(generator.logits(state[None]).argmax())
            assert (output == memorization.word.letters[i % memorization.word.period]) == is_right


def test_quarter_turns_and_integers_live_indefinitely() -> None:
    for precision in PRECISIONS:
        assert predicted_lifetime(memorize("abac"), precision) == (None, math.inf)
        assert predicted_lifetime(memorize("ab"), precision) == (None, math.inf)
    word = parse_word("0010111")
    for generator in (permutation(word), simplex(word)):
        for precision in LOW:
            assert np.array_equal(rounded(generator.hidden, precision), generator.hidden)
        assert repeats(with_rounded_hidden(generator, "bfloat16"), word, 20_000)


def test_a_direction_that_rounding_keeps_lasts_until_the_state_leaves_float64() -> None:
    memorization = arcs(4, 8)
    (angle, growth), *_ = drifts(memorization, "bfloat16")
    lifetime = predicted_lifetime(memorization, "bfloat16")
    assert angle == 0 != growth
    assert lifetime.first_wrong is None
    assert lifetime.horizon == pytest.approx(math.log(np.finfo(float).max) / abs(growth))


THREE_LETTERS = [text for n in (2, 3) for period in range(2, 7) for text in word_classes(n, period)]


@pytest.mark.parametrize("count", [3_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_every_word_of_three_letters_is_generated_in_float64(count: int) -> None:
    for text in THREE_LETTERS:
        memorization = memorize(text)
        assert repeats(memorization.generator, memorization.word, count), text
