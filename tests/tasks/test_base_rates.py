"""What answers that solve nothing score on languages to be recognized."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from lengthwise import make_task
from lengthwise.tasks.base_rates import MAJORITY, logistic_guesses
from lengthwise.tasks.regular.recognition import MAX_PAIRS, RecognitionTask

PAIRS = "logistic regression on counts of symbols and pairs"


def language(pattern: str) -> RecognitionTask:
    task = make_task("regex", pattern=pattern)
    assert isinstance(task, RecognitionTask)
    return task


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12))
def test_features_are_what_they_say(string: list[int]) -> None:
    task, inputs = language("[abc]*a|b|c"), torch.tensor([string])
    features = {name: int(values) for name, values in task.shallow_features(inputs).items()}
    counts = [string.count(symbol) for symbol in range(3)]
    is_equal = len(set(counts)) == 1
    assert features["whether counts are equal"] == is_equal
    assert features["number of runs"] == len([*itertools.groupby(string)])
    assert divmod(features["first and last symbol"], 3) == (string[0], string[-1])
    assert divmod(features["whether counts are equal, first and last symbol"], 9) == (
        is_equal,
        3 * string[0] + string[-1],
    )
    (row,) = task.shallow_counts(inputs)[PAIRS].tolist()
    assert row[:3] == counts
    neighbors = [*itertools.pairwise(string)]
    assert row[3:] == [neighbors.count(pair) for pair in itertools.product(range(3), repeat=2)]


def test_of_many_symbols_only_they_are_counted() -> None:
    symbols = "abcdefghijklmnopqrstuvwxyz"
    assert len(symbols) ** 2 > MAX_PAIRS
    task = language(f"[{symbols}]*a")
    assert [*task.shallow_counts(torch.zeros(1, 5, dtype=torch.int64))] == ["logistic regression on counts of symbols"]


@pytest.mark.parametrize("kind", ["noisy", "separable", "one answer", "constant count"])
def test_a_regression_is_that_of_scikit_learn(kind: str) -> None:
    generator = torch.Generator().manual_seed(0)
    counts = torch.randint(0, 9, (600, 4), generator=generator)
    noise = 8 * torch.rand(600, generator=generator) if kind == "noisy" else 0.5
    answers = (counts[:, 0] + 2 * counts[:, 1] - counts[:, 2] + noise > 10).long()
    if kind == "constant count":
        counts[:, 3] = 5
    if kind == "one answer":
        answers[:300] = 1
    known, held_out = counts[:300], counts[300:]
    guesses = logistic_guesses(known, answers[:300], held_out)
    if kind == "one answer":
        assert guesses.all()
        return
    mean, scale = known.numpy().mean(0), np.maximum(known.numpy().std(0, ddof=1), 1e-12)
    theirs = LogisticRegression(C=1.0, max_iter=1_000).fit((known.numpy() - mean) / scale, answers[:300].numpy())
    agreeing = (theirs.predict((held_out.numpy() - mean) / scale) == guesses.numpy()).mean()
    assert agreeing >= 0.99, "they give the bias no ridge"


def test_what_separates_a_language_is_seen() -> None:
    """Of (ab|c)* pairs say nearly all; of published strings of D_2 runs say all, of near misses they do not."""
    assert language("(ab|c)*").base_rates(40)[PAIRS] > 0.9
    published, near = (make_task("bounded-dyck", sampling=name) for name in ("chi2023", "near-miss"))
    assert published.base_rates(60)["number of runs"] > 0.99
    assert max(near.base_rates(60).values()) < 0.9
    assert near.base_rates(60)[MAJORITY] == near.baseline(60) == 0.5
    assert published.base_rates(61) == dict.fromkeys(published.base_rates(61), 1.0), "of odd lengths none is inside"


def test_parity_of_a_symbol_has_no_shallow_baseline() -> None:
    """Uniform strings with an even number of a: no feature but the count itself, whose parity is not linear, helps."""
    rates = language("(b*ab*a)*b*").base_rates(60)
    uniform = {name: rate for name, rate in rates.items() if "pairs" in name}
    assert max(uniform.values()) < 0.6
